//! What results look like in each version.
