//! The `jackfield` binary.

fn main() {}
