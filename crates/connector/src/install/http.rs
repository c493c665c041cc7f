//! The HTTP client: one GET at a time, redirects followed by hand so that a credential goes to the
//! origin it is for and to no other. Says of each failure whether another try can help.

use super::sources::npmrc::Authorization;
use super::sources::url::{Scheme, Url};
use super::sources::{SourceError, Sources};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

const MOST_REDIRECTS: usize = 5;

/// How long to wait, and how often to try again.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until a connection stands.
    pub connect: Duration,
    /// Without a byte from the other side.
    pub stall: Duration,
    /// Before the second try; it doubles with each further one.
    pub pause: Duration,
    /// Tries in a row that bring nothing new.
    pub tries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(30),
            pause: Duration::from_millis(500),
            tries: 6,
        }
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The network's fault or a time-out: another try can help.
    #[error("{0}")]
    Transient(String),
    /// A certificate outside its dates: this machine's clock or the server's neglect.
    #[error("the certificate of {host} is {fault} by this machine's clock, which says {clock}")]
    Dates {
        /// Whose certificate.
        host: String,
        /// "not valid yet" or "expired".
        fault: &'static str,
        /// The machine's date.
        clock: String,
    },
    /// Another fault of the certificate.
    #[error("the certificate of {host} is not trusted: {reason}")]
    Certificate {
        /// Whose certificate.
        host: String,
        /// Why, in the words of the TLS library.
        reason: String,
    },
    /// A redirect that is not followed.
    #[error("{from} redirects {why}")]
    Redirect {
        /// The address that redirects.
        from: Url,
        /// What is wrong with it.
        why: String,
    },
    /// A proxy that cannot be used; its address may hold a password and is not repeated.
    #[error("the configured proxy cannot be used: {0}")]
    Proxy(String),
    /// Certificate files.
    #[error(transparent)]
    Source(#[from] Arc<SourceError>),
    /// Anything else that another try does not mend.
    #[error("{0}")]
    Permanent(String),
}

impl HttpError {
    /// Whether another try can help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient(_))
    }

    /// The fix.
    pub fn hint(&self) -> String {
        match self {
            Self::Dates { .. } => "set the clock; --mirror FOLDER and --offline need none".into(),
            Self::Certificate { .. } => {
                "name the authority with SSL_CERT_FILE or npm's cafile, or use --mirror FOLDER"
                    .into()
            }
            Self::Proxy(_) => {
                "look at HTTPS_PROXY, HTTP_PROXY and npm's https-proxy and proxy".into()
            }
            Self::Source(error) => error.hint(),
            _ => "check the network, the registry that npm is configured for, and the proxy; \
                  --mirror URL|FOLDER names another source"
                .into(),
        }
    }
}

/// The part of a file that is asked for.
#[derive(Debug, Default)]
pub struct Part {
    /// The first byte wanted; 0 asks for the whole file.
    pub from: u64,
    /// What the server called this state of the file; with it a changed file comes whole.
    pub validator: Option<String>,
}

/// An answer whose body has not been read.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Where the answer came from after redirects.
    pub url: Url,
    headers: HeaderMap,
    body: Body,
}

/// The client of one command.
pub struct Client<'a> {
    sources: &'a Sources,
    /// Its patience.
    pub patience: Patience,
    agents: Mutex<BTreeMap<String, Agent>>,
    roots: OnceLock<Result<Arc<Vec<Certificate<'static>>>, Arc<SourceError>>>,
}

impl<'a> Client<'a> {
    /// A client that has opened nothing yet.
    pub fn new(sources: &'a Sources, patience: Patience) -> Self {
        Self {
            sources,
            patience,
            agents: Mutex::default(),
            roots: OnceLock::new(),
        }
    }

    /// Asks for a file, following at most five redirects. The credential goes only to the origin
    /// of `url`, and once a redirect has left that origin it is not sent again.
    pub fn get(
        &self,
        url: &Url,
        authorization: Option<&Authorization>,
        part: &Part,
    ) -> Result<Answer, HttpError> {
        let mut at = url.clone();
        let mut authorization = authorization;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.once(&at, authorization, part)?;
            let (head, body) = response.into_parts();
            let status = head.status.as_u16();
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                return Ok(Answer {
                    status,
                    url: at,
                    headers: head.headers,
                    body,
                });
            }
            let next = redirect(&at, &head.headers)?;
            if !next.same_origin(url) {
                authorization = None;
            }
            at = next;
        }
        let why = format!("more than {MOST_REDIRECTS} times");
        Err(HttpError::Redirect {
            from: url.clone(),
            why,
        })
    }

    fn once(
        &self,
        url: &Url,
        authorization: Option<&Authorization>,
        part: &Part,
    ) -> Result<Response<Body>, HttpError> {
        let mut request = self.agent(url)?.get(url.to_string());
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization.header());
        }
        if part.from > 0 {
            request = request.header("range", format!("bytes={}-", part.from));
            if let Some(validator) = &part.validator {
                request = request.header("if-range", validator);
            }
        }
        request.call().map_err(|error| explain(&error, url))
    }

    fn agent(&self, url: &Url) -> Result<Agent, HttpError> {
        let proxy = self.sources.proxies.of(url).unwrap_or_default();
        let encrypted = url.scheme() == Scheme::Https || proxy.starts_with("https:");
        let key = format!("{encrypted} {proxy}");
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(&key) {
            return Ok(agent.clone());
        }
        let agent = self.build(proxy, encrypted)?;
        agents.insert(key, agent.clone());
        Ok(agent)
    }

    fn build(&self, proxy: &str, encrypted: bool) -> Result<Agent, HttpError> {
        let proxy = match proxy {
            "" => None,
            text => Some(Proxy::new(text).map_err(|error| HttpError::Proxy(error.to_string()))?),
        };
        let mut tls = TlsConfig::builder();
        if encrypted {
            let load = || self.sources.roots().map(Arc::new).map_err(Arc::new);
            let roots = self.roots.get_or_init(load).clone()?;
            tls = tls.root_certs(RootCerts::Specific(roots));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .tls_config(tls.build())
            .user_agent(concat!("sema-connector/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(self.patience.connect))
            .timeout_recv_response(Some(self.patience.stall))
            .timeout_per_read(Some(self.patience.stall))
            .timeout_per_write(Some(self.patience.stall))
            .input_buffer_size(256 << 10);
        Ok(config.build().new_agent())
    }
}

impl Answer {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The number of bytes that the body is said to have.
    pub fn length(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    /// `Content-Range: bytes FROM-TO/TOTAL`, or `bytes */TOTAL`, as FROM and TOTAL.
    pub fn range(&self) -> (Option<u64>, Option<u64>) {
        let range = self
            .header("content-range")
            .and_then(|text| text.strip_prefix("bytes "));
        let Some((span, total)) = range.and_then(|range| range.split_once('/')) else {
            return (None, None);
        };
        let from = span.split('-').next().unwrap_or_default();
        (from.trim().parse().ok(), total.trim().parse().ok())
    }

    /// What the server calls this state of the file, if it can be used in `If-Range`.
    pub fn validator(&self) -> Option<String> {
        let tag = self.header("etag").filter(|tag| tag.starts_with('"'));
        tag.or_else(|| self.header("last-modified"))
            .map(str::to_owned)
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds: u64 = self.header("retry-after")?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds.min(60)))
    }

    /// The body. It ends early, with an error, where the connection breaks.
    pub fn into_reader(self) -> impl Read {
        self.body.into_with_config().limit(u64::MAX).reader()
    }
}

fn redirect(from: &Url, headers: &HeaderMap) -> Result<Url, HttpError> {
    let refused = |why: &str| HttpError::Redirect {
        from: from.clone(),
        why: why.into(),
    };
    let location = headers
        .get("location")
        .and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| refused("nowhere"))?;
    let next = from
        .join(location)
        .map_err(|error| refused(&format!("wrongly: {error}")))?;
    if from.scheme() == Scheme::Https && next.scheme() == Scheme::Http {
        return Err(refused("to an address without encryption"));
    }
    Ok(next)
}

/// Sorts a failure of the library: certificates first, for they hide inside I/O errors.
fn explain(error: &ureq::Error, url: &Url) -> HttpError {
    let host = url.authority();
    if let Some(tls) = tls_error(error) {
        return explain_tls(tls, host);
    }
    match error {
        ureq::Error::Timeout(_) => HttpError::Transient(format!("no answer from {host} in time")),
        ureq::Error::HostNotFound => HttpError::Transient(format!("the host {host} is not found")),
        ureq::Error::ConnectionFailed => HttpError::Transient(format!("no connection to {host}")),
        ureq::Error::Io(source) => {
            HttpError::Transient(format!("no connection to {host}: {source}"))
        }
        ureq::Error::Protocol(source) => {
            HttpError::Transient(format!("{host} breaks HTTP: {source}"))
        }
        ureq::Error::ConnectProxyFailed(reason) => HttpError::Proxy(reason.clone()),
        ureq::Error::InvalidProxyUrl => HttpError::Proxy("its address is malformed".into()),
        other => HttpError::Permanent(format!("asking {host} failed: {other}")),
    }
}

fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(tls) => Some(tls),
        ureq::Error::Io(source) => source.get_ref()?.downcast_ref(),
        _ => None,
    }
}

fn explain_tls(error: &rustls::Error, host: String) -> HttpError {
    use rustls::CertificateError as Fault;
    let rustls::Error::InvalidCertificate(fault) = error else {
        return HttpError::Transient(format!("no TLS with {host}: {error}"));
    };
    let fault = match fault {
        Fault::Expired | Fault::ExpiredContext { .. } => "expired",
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "not valid yet",
        Fault::UnknownIssuer => return untrusted(host, "no authority known here issued it"),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            return untrusted(host, "it is for another host");
        }
        other => return untrusted(host, &other.to_string()),
    };
    HttpError::Dates {
        host,
        fault,
        clock: date(SystemTime::now()),
    }
}

fn untrusted(host: String, reason: &str) -> HttpError {
    let reason = reason.to_owned();
    HttpError::Certificate { host, reason }
}

/// What a failed read of a body means.
pub(super) fn broken(error: &io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(ureq::Error::Timeout(_)) = inner {
        return format!("{host} sends nothing more");
    }
    format!("the connection to {host} broke: {error}")
}

/// A moment as `2026-12-01 16:18 UTC`.
pub(super) fn date(moment: SystemTime) -> String {
    let since = moment
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (days, rest) = (since / 86_400, since % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        rest / 3600,
        rest % 3600 / 60
    )
}

/// Days since 1970-01-01 as a date, counted in eras of 400 years that start on 1 March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_out() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_340, "2000-02-28 23:59 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_796_141_880, "2026-12-01 16:18 UTC"),
        ] {
            let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(date(moment), text);
        }
    }
}
