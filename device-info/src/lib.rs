//! Device information for network devices.
