//! What is written about attachments.
