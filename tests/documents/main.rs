//! Documents that cannot lie: each is made from the code and the tests, or compared with them.
//!
//! `WRITE_DOCS=1 cargo test --test documents` writes those that are made; without it a document
//! that is out of date fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by failing"
)]

mod architecture;
mod clause;
mod configuration;
mod conformance;
mod document;
mod errors;
mod flags;
mod imports;
mod links;
mod scripts;
mod specification;
mod tag;
