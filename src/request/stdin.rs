//! Reads the configuration from stdin, up to a limit.

use std::io::Read;

/// The largest configuration, in bytes. For comparison, etcd limits an object, such as a ConfigMap
/// with a configuration, to about 1.5 MiB.
pub const MAX_STDIN: u64 = 4 << 20;

/// Reads all of `input`, up to [`MAX_STDIN`] bytes.
///
/// # Errors
/// Code 5 if a read fails or the input is larger than [`MAX_STDIN`].
pub fn read_stdin(input: impl Read) -> Result<Vec<u8>, StdinError> {
    let mut bytes = Vec::with_capacity(8 << 10);
    input.take(MAX_STDIN + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(StdinError::TooLarge);
    }
    Ok(bytes)
}

/// Why stdin cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StdinError {
    /// A read failed.
    #[error("cannot read the configuration from stdin: {0}")]
    Read(#[from] std::io::Error),
    /// The input is larger than [`MAX_STDIN`].
    #[error(
        "the configuration on stdin is larger than {} bytes; make it smaller",
        MAX_STDIN
    )]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_configuration_within_the_limit_is_read() {
        let largest_object = 3 << 19;
        assert_eq!(
            read_stdin(std::io::repeat(b' ').take(largest_object))
                .unwrap()
                .len(),
            3 << 19
        );
        let flood = read_stdin(std::io::repeat(b' ').take(10 << 20)).unwrap_err();
        assert!(
            flood.to_string().contains("larger than 4194304 bytes"),
            "{flood}"
        );
    }
}
