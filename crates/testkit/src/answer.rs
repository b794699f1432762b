use reqwest::header::HeaderMap;
use serde_json::Value;

/// A response of the server.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    /// `null` for an empty body.
    pub body: Value,
}

impl Answer {
    pub async fn of(response: reqwest::Response) -> Self {
        Self::try_of(response).await.unwrap()
    }

    /// `None` if the connection is lost before the response.
    pub async fn try_of(response: reqwest::Response) -> Option<Self> {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response.bytes().await.ok()?.to_vec();
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap_or(Value::Null)
        };
        Some(Self {
            status,
            headers,
            bytes,
            body,
        })
    }

    pub fn id(&self) -> &str {
        self.body["id"].as_str().unwrap()
    }

    pub fn items(&self) -> &[Value] {
        self.body["items"].as_array().unwrap()
    }

    /// One member of every item of a list.
    pub fn column(&self, member: &str) -> Vec<&str> {
        let items = self.items().iter();
        items.map(|item| item[member].as_str().unwrap()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status and code of a problem, without the common prefix.
    pub fn problem(&self) -> (u16, &str) {
        let code = self.body["code"].as_str().unwrap_or_default();
        (
            self.status,
            code.strip_prefix("HYPERFLEET-").unwrap_or(code),
        )
    }

    pub fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }

    pub fn condition(&self, kind: &str) -> &Value {
        let conditions = self.body["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|c| c["type"] == kind);
        found.unwrap_or_else(|| panic!("no condition {kind} in {conditions:?}"))
    }
}

/// A client for HTTP.
pub fn http_client() -> reqwest::Client {
    http_client_builder().build().unwrap()
}

/// Begins a client for HTTP. It trusts no authority: reading those of this machine takes longer than many requests.
pub fn http_client_builder() -> reqwest::ClientBuilder {
    hyperfleet_server_kit::crypto::install();
    reqwest::Client::builder().tls_certs_only([])
}
