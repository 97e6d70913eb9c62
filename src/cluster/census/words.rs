//! Why objects are missing from a census, in words.

use super::{CensusProblem, MOST_DEFINITIONS};
use crate::diagnostic::Problem;

impl Problem for CensusProblem {
    fn words(&self) -> String {
        match self {
            Self::Definition(error) => format!("NetworkAttachmentDefinition {error}"),
            Self::ManyDefinitions => format!(
                "the cluster has more than {MOST_DEFINITIONS} definitions; the rest is not \
                 examined"
            ),
            Self::ManyPods => {
                "this node has more pods than the agent keeps; the rest is not examined".to_owned()
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npwg::ObjectRef;

    #[test]
    fn each_problem_says_what_is_missing() {
        let name = ObjectRef::new("a", "B").unwrap_err();
        let expected = format!("NetworkAttachmentDefinition {name}");
        for (problem, words) in [
            (CensusProblem::Definition(name.into()), expected.as_str()),
            (
                CensusProblem::ManyDefinitions,
                "the cluster has more than 20000 definitions; the rest is not examined",
            ),
            (
                CensusProblem::ManyPods,
                "this node has more pods than the agent keeps; the rest is not examined",
            ),
        ] {
            assert_eq!(problem.words(), words);
        }
    }
}
