//! No cluster can be asked: the agent that the configuration names is not there.

use std::path::{Path, PathBuf};

use super::{Answer, Cluster, ClusterError, Publication, Question};

/// Stands in where there is neither a folder nor an agent: every question fails with "try again".
#[derive(Debug)]
pub struct Nobody {
    socket: PathBuf,
}

impl Nobody {
    /// Nobody at `socket`.
    pub fn new(socket: &Path) -> Nobody {
        Nobody {
            socket: socket.to_owned(),
        }
    }

    fn error(&self) -> ClusterError {
        ClusterError::NoAgent {
            socket: self.socket.display().to_string(),
            cause: "nobody listens".to_owned(),
        }
    }
}

impl Cluster for Nobody {
    fn ask(&self, _question: &Question) -> Result<Answer, ClusterError> {
        Err(self.error())
    }

    fn publish(&self, _publication: &Publication) -> Result<(), ClusterError> {
        Err(self.error())
    }
}
