//! A DRA driver with one device (Kubernetes `resource.k8s.io/v1`): its slice, its class, and the
//! program that answers kubelet.

use std::fs;

use serde_json::{Value, json};

use super::{Lab, eventually};

const POOL: &str = "pool-a";
const DEVICE: &str = "vf1";

impl Lab {
    /// Starts a driver whose device has these attributes in its slice. The answer is the class by
    /// which claims ask for it.
    pub(crate) fn start_dra_driver(&self, attributes: &Value) -> String {
        let name = format!("vf.{}.example.com", self.machine.name);
        let resources = "/apis/resource.k8s.io/v1";
        let devices = json!([{"name": DEVICE, "attributes": attributes}]);
        let pool = json!({"name": POOL, "generation": 1, "resourceSliceCount": 1});
        self.admin.create(
            &format!("{resources}/resourceslices"),
            &json!({"metadata": {"name": name}, "spec": {
                "driver": name, "nodeName": self.machine.name, "pool": pool, "devices": devices}}),
        );
        let expression = format!(r#"device.driver == "{name}""#);
        self.admin.create(
            &format!("{resources}/deviceclasses"),
            &json!({"metadata": {"name": name},
                    "spec": {"selectors": [{"cel": {"expression": expression}}]}}),
        );
        let program =
            std::env::var("DRA_DRIVER").expect("DRA_DRIVER: run scripts/test --only node");
        let log = self.machine.path("log/dra-driver");
        let command = format!(
            "setsid {program} {name} {POOL} {DEVICE} >{} 2>&1 </dev/null &",
            log.display()
        );
        self.machine.run(&["sh", "-c", &command]);
        eventually("kubelet has registered the driver", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("registered: true"))
        });
        name
    }
}
