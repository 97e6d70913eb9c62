//! Sets up TLS connections to the API server from the credentials.
//!
//! This module replaces `ConfigExt::rustls_client_config` of the crate `kube`. That function would
//! also link the code for credential plugins, with a second YAML parser, JSONPath and regular
//! expressions.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper_rustls::ConfigBuilderExt;
use kube::Config;
use kube::config::AuthInfo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use secrecy::ExposeSecret;

use super::CredentialsError;
use crate::regular_file;

/// The largest file with certificates or a key, in bytes.
const MAX_PEM: u64 = 1 << 20;

/// Returns the settings of TLS connections to the API server in `config`. If `config` accepts
/// invalid certificates, the client accepts every server. Otherwise, if `config` has no certificate
/// authority, the client trusts the system's certificate authorities.
///
/// # Errors
/// When a certificate or key is missing or unusable.
pub(super) fn settings(config: &Config) -> Result<ClientConfig, CredentialsError> {
    let builder = ClientConfig::builder();
    let builder = match &config.root_cert {
        _ if config.accept_invalid_certs => {
            let any = AnyServer(builder.crypto_provider().clone());
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(any))
        }
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(CertificateDer::from_slice(authority))?;
            }
            builder.with_root_certificates(roots)
        }
        None => builder.with_native_roots()?,
    };
    Ok(match identity(&config.auth_info)? {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    })
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Returns the client certificate and the key of `user`; `None` if `user` has neither.
fn identity(user: &AuthInfo) -> Result<Option<Identity>, CredentialsError> {
    let certificate = pem(
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )?;
    let key = user.client_key_data.as_ref();
    let key = pem(
        key.map(ExposeSecret::expose_secret),
        user.client_key.as_deref(),
    )?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>()?;
            Ok(Some((chain, PrivateKeyDer::from_pem_slice(&key)?)))
        }
        (None, None) => Ok(None),
        _ => Err(CredentialsError::Identity),
    }
}

/// Returns the PEM text: decodes `data` from base64 if it is set, or else reads `file`.
fn pem(data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>, CredentialsError> {
    match (data, file) {
        (Some(data), _) => Ok(Some(BASE64_STANDARD.decode(data)?)),
        (None, Some(file)) => regular_file::read(Path::new(file), MAX_PEM)
            .map(Some)
            .map_err(|error| CredentialsError::File(file.to_owned(), error)),
        (None, None) => Ok(None),
    }
}

/// Accepts the certificate of every server (`insecure-skip-tls-verify`).
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
