//! What `jackfield devices` shows of a node's hardware.

use device_info::fixtures;

use crate::lab::{Call, Lab};

fn lab() -> Lab {
    let lab = Lab::new();
    fixtures::igb_vfio().build(&lab.path("node")).unwrap();
    lab
}

/// `jackfield devices` on a node with the fixture's hardware and this `pci.ids`.
fn devices(lab: &Lab, form: &str, table: Option<&str>) -> Call {
    let root = lab.path("");
    let put = table.map_or_else(String::new, |text| {
        let path = lab.write("pci.ids", text);
        format!("cp {} /usr/share/misc/pci.ids;", path.display())
    });
    // Debian's place; there is no other here, or it is hidden.
    let script = format!(
        "set -e; cd {}; mount --bind node/sys /sys
         for dir in misc hwdata; do
             [ ! -d /usr/share/$dir ] || mount -t tmpfs tmpfs /usr/share/$dir
         done
         {put} exec \"$@\"",
        root.display()
    );
    let under = ["unshare", "--mount", "sh", "-c", &script, "-"];
    lab.cli(&["devices", "-o", form]).under(&under)
}

/// The table's bytes are an administrator's, or a package's.
const TABLE: &str =
    "# names\n8086  Intel of the node\n\t10c9  Gigabit \u{1b}[31m<&>\n\t\t8086 0001  A card\n";

#[test]
fn functions_have_the_names_of_the_nodes_table() {
    let lab = lab();
    let shown = devices(&lab, "table", Some(TABLE)).run().quiet();
    let row = |address: &str| {
        let mut lines = shown.lines();
        lines.find(|line| line.starts_with(address)).unwrap()
    };
    let physical = row("0000:01:00.0");
    assert!(physical.contains("8086:10c9"), "{shown}");
    assert!(
        physical.ends_with(r"Intel of the node Gigabit \u{1b}[31m<&>"),
        "{shown}"
    );
    assert!(row("0000:01:10.0").contains("Intel of the node"), "{shown}");

    let told = devices(&lab, "json", Some(TABLE)).run().success();
    let physical = &told["physical_functions"][0];
    assert_eq!(physical["vendor_name"], "Intel of the node");
    assert_eq!(physical["device_name"], r"Gigabit \u{1b}[31m<&>");
    assert_eq!(physical["device"], 0x10c9);

    let picture = devices(&lab, "svg", Some(TABLE)).run().quiet();
    let name = r">Intel of the node Gigabit \u{1b}[31m&lt;&amp;&gt;</text>";
    assert!(picture.contains(name), "{picture}");
}

#[test]
fn a_table_that_cannot_be_read_leaves_the_numbers() {
    let lab = lab();
    let outcome = devices(&lab, "json", Some(&"x".repeat((16 << 20) + 1))).run();
    let told = outcome.success();
    assert_eq!(told["physical_functions"][0]["vendor"], 0x8086);
    let words = "/usr/share/misc/pci.ids: larger than 16777216 bytes; ";
    assert!(outcome.stderr.contains(words), "{outcome}");
    let outcome = devices(&lab, "json", None).run();
    assert_eq!(
        (outcome.exit, outcome.stderr.as_str()),
        (0, ""),
        "{outcome}"
    );
}
