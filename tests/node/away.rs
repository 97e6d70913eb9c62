//! A node whose agent is gone for longer than a cluster waits for a node that is not ready.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{Lab, Pod};

/// After a minute the node used to be NotReady, and after two kubelet had told everybody.
const GONE: Duration = Duration::from_secs(180);

#[test]
fn a_node_without_an_agent_stays_ready_and_starts_the_pods_that_need_none() {
    let lab = Lab::with_jackfield();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.run(&Pod::new(&lab, "before").networks("storage"));
    lab.remove_daemon_set();
    let since = Instant::now();
    lab.create(&Pod::new(&lab, "waiting").networks("storage"));
    lab.run(&Pod::new(&lab, "plain"));
    while since.elapsed() < GONE {
        assert!(lab.is_ready(), "not ready after {:?}", since.elapsed());
        std::thread::sleep(Duration::from_secs(1));
    }
    lab.run(&Pod::new(&lab, "late"));
    let words = ["FailedCreatePodSandBox", "the agent does not answer"];
    lab.wait_for_event("waiting", &words);
    assert!(lab.is_ready());

    lab.create_daemon_set();
    lab.wait_until_running("waiting");
    assert_eq!(lab.status("waiting", 2)[1]["interface"], "net1");
    lab.wait_for_event_of_node(&["AgentAway", "did not answer for"]);
    assert_eq!(lab.status("late", 1)[0]["interface"], "eth0");
    lab.wait_until_running("before");
    lab.delete(&["before", "waiting", "plain", "late"]);
    lab.assert_nothing_left(&["before", "waiting"], 3);
}
