//! Reads a kubeconfig, the files that it names, and the token.

use std::path::Path;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use kube::Config;
use kube::config::Kubeconfig;
use secrecy::ExposeSecret;

use super::CredentialsError;
use crate::regular_file;

/// The largest token, in bytes.
const MAX_TOKEN: u64 = 64 << 10;

/// The largest kubeconfig, in bytes.
const MAX_KUBECONFIG: u64 = 1 << 20;

/// Reads a kubeconfig. Relative paths in it are relative to the kubeconfig's directory.
///
/// This function does not use the kubeconfig reader of the crate `kube`. That reader would block on
/// a FIFO and would add a second YAML parser.
///
/// # Errors
/// When the kubeconfig is not valid, or when the kubeconfig or a file that it names cannot be read.
pub(super) fn kubeconfig(path: &Path) -> Result<Kubeconfig, CredentialsError> {
    let text = regular_file::read_text(path, MAX_KUBECONFIG)?;
    let mut kubeconfig: Kubeconfig = serde_norway::from_str(&text)?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    for file in files(&mut kubeconfig) {
        *file = dir.join(&*file).display().to_string();
        let opened = regular_file::open(Path::new(file));
        opened.map_err(|error| CredentialsError::File(file.clone(), error))?;
    }
    Ok(kubeconfig)
}

/// Returns all files that a kubeconfig names, including the files of contexts other than the
/// current one.
fn files(kubeconfig: &mut Kubeconfig) -> impl Iterator<Item = &mut String> {
    let clusters = kubeconfig.clusters.iter_mut();
    let clusters = clusters.filter_map(|named| named.cluster.as_mut());
    let authorities = clusters.filter_map(|cluster| cluster.certificate_authority.as_mut());
    let users = kubeconfig.auth_infos.iter_mut();
    let users = users.filter_map(|named| named.auth_info.as_mut());
    let of_users = users.flat_map(|user| {
        let named = [
            &mut user.client_certificate,
            &mut user.client_key,
            &mut user.token_file,
        ];
        named.into_iter().flatten()
    });
    authorities.chain(of_users)
}

/// Adds a header with the token to the configuration. Removes white space around the token. Reads
/// the token's file only once, so the caller must build a new configuration to use a newer token.
///
/// # Errors
/// When the token cannot be sent as a header, when its file cannot be read, or when the
/// configuration names a program that supplies the token. Jackfield runs no such program, because
/// the program could use up the time of the CNI call.
pub(super) fn with_token(mut config: Config) -> Result<Config, CredentialsError> {
    let user = &mut config.auth_info;
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err(CredentialsError::Program);
    }
    let token = match (&user.token_file, &user.token) {
        (Some(file), _) => {
            let text = regular_file::read_text(Path::new(file), MAX_TOKEN);
            text.map_err(|error| CredentialsError::File(file.clone(), error))?
        }
        (None, Some(token)) => token.expose_secret().to_owned(),
        (None, None) => return Ok(config),
    };
    let Ok(mut bearer) = HeaderValue::from_str(&format!("Bearer {}", token.trim())) else {
        return Err(CredentialsError::Token);
    };
    bearer.set_sensitive(true);
    config.headers.push((AUTHORIZATION, bearer));
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use kube::config::ExecConfig;
    use secrecy::SecretString;

    use super::*;

    fn config(token: &str) -> Config {
        let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
        config.auth_info.token = Some(SecretString::from(token.to_owned()));
        config
    }

    fn token(config: &Config) -> &str {
        let (_, bearer) = config.headers.first().unwrap();
        bearer.to_str().unwrap().strip_prefix("Bearer ").unwrap()
    }

    #[test]
    fn a_token_may_contain_a_line_feed_only_at_the_end() {
        assert_eq!(token(&with_token(config("abc\n")).unwrap()), "abc");
        let error = with_token(config("a\nb")).unwrap_err();
        assert!(matches!(error, CredentialsError::Token), "{error}");
    }

    #[test]
    fn a_token_is_read_only_from_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "abc\n").unwrap();
        let mut named = config("other");
        named.auth_info.token_file = Some(file.display().to_string());
        assert_eq!(token(&with_token(named.clone()).unwrap()), "abc");
        std::fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = with_token(named).unwrap_err();
        assert!(
            matches!(&error, CredentialsError::File(path, source)
                if *path == file.display().to_string() && source.kind() == ErrorKind::InvalidData),
            "{error}"
        );
    }

    #[test]
    fn paths_in_a_kubeconfig_are_relative_to_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let token = dir.path().join("token").display().to_string();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: a\n  cluster:\n    \
             server: https://127.0.0.1:1\n    certificate-authority: ca.crt\nusers:\n- name: a\n  user:\n    \
             tokenFile: {token}\n    client-key: keys/a\n"
        );
        std::fs::write(&path, text).unwrap();
        let expected = [
            dir.path().join("ca.crt").display().to_string(),
            dir.path().join("keys/a").display().to_string(),
            token,
        ];
        let error = kubeconfig(&path).unwrap_err();
        assert!(matches!(error, CredentialsError::File(..)), "{error}");
        std::fs::create_dir(dir.path().join("keys")).unwrap();
        for file in &expected {
            std::fs::write(file, "").unwrap();
        }
        let mut read = kubeconfig(&path).unwrap();
        assert_eq!(
            files(&mut read).collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
        std::fs::write(&path, "clusters: [").unwrap();
        assert!(kubeconfig(&path).is_err());
    }

    #[test]
    fn a_program_for_credentials_is_refused() {
        let mut exec = config("abc");
        exec.auth_info.exec = serde_json::from_str::<ExecConfig>(r#"{"command":"sleep"}"#).ok();
        let error = with_token(exec).unwrap_err();
        assert!(matches!(error, CredentialsError::Program), "{error}");
    }
}
