//! vDPA devices in user space from the guest's program `vduse-net`, a stub that answers the kernel
//! and moves no packets.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::case::Stop;
use crate::rig::{Vdpa, command};

/// A VDUSE device on the vDPA bus, removed when dropped.
#[derive(Debug)]
pub(crate) struct Vduse {
    // Dropped first, because the bus must release the device before the program may end.
    vdpa: Vdpa,
    _program: Program,
}

impl Vduse {
    pub(crate) fn add(name: &'static str) -> Result<Self, Stop> {
        let program = Program::start(name)?;
        Ok(Self {
            vdpa: Vdpa::add(name, "vduse")?,
            _program: program,
        })
    }

    pub(crate) const fn vdpa(&self) -> &Vdpa {
        &self.vdpa
    }
}

#[derive(Debug)]
struct Program {
    name: &'static str,
    process: Child,
}

impl Program {
    fn start(name: &'static str) -> Result<Self, Stop> {
        let mut program = Self {
            name,
            process: Command::new("vduse-net")
                .args([name, "02:00:00:00:00:77"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()?,
        };
        let mut line = String::new();
        if let Some(out) = program.process.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        if line != "ready\n" {
            return Err(Stop::failed(format!(
                "vduse-net {name}: not ready: {line:?}"
            )));
        }
        Ok(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = command("vduse-net", &["--destroy", self.name]);
    }
}
