//! What the specification calls valid and invalid.
