//! A service that is not this one: an older version, or one that answers as a test says.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::web::{Bytes, Data, Query};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::StreamExt as _;
use futures_util::stream;
use hyperfleet_adapter::{Api, Token};
use serde_json::{Value, json};

/// How a request with `watch=true` is answered.
#[derive(Debug, Clone)]
pub(super) enum WatchAnswer {
    /// With the list, as if the parameter was not there.
    List,
    /// With this status.
    Refusal(u16),
    /// With these events, and then with silence.
    Events(Vec<Value>),
    /// With these events; the answer ends after them.
    EndingEvents(Vec<Value>),
}

/// A service with one cart.
pub(super) struct Stub {
    base: String,
    state: Arc<State>,
}

struct State {
    /// How watches are answered, in their order; the last answer is repeated.
    answers: Vec<WatchAnswer>,
    changing: Mutex<Changing>,
}

struct Changing {
    generation: i64,
    /// Queries of lists and watches.
    queries: Vec<String>,
    watches: usize,
}

impl Stub {
    pub(super) fn start(answers: Vec<WatchAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let changing = Mutex::new(Changing {
            generation: 1,
            queries: Vec::new(),
            watches: 0,
        });
        let state = Arc::new(State { answers, changing });
        let shared = Data::from(Arc::clone(&state));
        let server = HttpServer::new(move || {
            let app = App::new().app_data(shared.clone());
            app.default_service(web::to(answer))
        });
        let server = server.workers(1).disable_signals();
        let server = server.listen(listener).unwrap().shutdown_timeout(0).run();
        tokio::spawn(server);
        Self { base, state }
    }

    pub(super) fn api(&self) -> Api {
        Api::new(&self.base, Token::None).unwrap()
    }

    /// Changes the cart.
    pub(super) fn change(&self) {
        self.state.changing.lock().unwrap().generation += 1;
    }

    /// The queries of watches so far.
    pub(super) fn watches(&self) -> Vec<String> {
        self.queries(|query| query.contains("watch=true"))
    }

    /// The queries of lists so far.
    pub(super) fn lists(&self) -> Vec<String> {
        self.queries(|query| !query.contains("watch=true"))
    }

    fn queries(&self, is_asked_for: impl Fn(&str) -> bool) -> Vec<String> {
        let changing = self.state.changing.lock().unwrap();
        let queries = changing.queries.iter();
        queries
            .filter(|query| is_asked_for(query))
            .cloned()
            .collect()
    }
}

/// The cart in this generation.
pub(super) fn cart(generation: i64) -> Value {
    json!({
        "id": "1", "kind": "Cart", "name": "cart", "href": "/api/hyperfleet/v1/carts/1",
        "generation": generation, "spec": {},
    })
}

async fn answer(request: HttpRequest, state: Data<State>, query: Query<Value>) -> HttpResponse {
    let mut changing = state.changing.lock().unwrap();
    let cart = cart(changing.generation);
    let path = request.path();
    if path.ends_with("/statuses") {
        return HttpResponse::Created().json(json!({}));
    }
    if path.ends_with("/carts/1") {
        return HttpResponse::Ok().json(cart);
    }
    changing.queries.push(request.query_string().to_owned());
    let list = HttpResponse::Ok().json(json!({"items": [cart], "total": 1}));
    if query["watch"] != "true" {
        return list;
    }
    let number = changing.watches.min(state.answers.len() - 1);
    changing.watches += 1;
    let (events, is_ending) = match &state.answers[number] {
        WatchAnswer::List => return list,
        WatchAnswer::Refusal(status) => {
            let status = actix_web::http::StatusCode::from_u16(*status).unwrap();
            return HttpResponse::build(status).json(json!({"detail": "no"}));
        }
        WatchAnswer::Events(events) => (events, false),
        WatchAnswer::EndingEvents(events) => (events, true),
    };
    let lines = events.iter().map(|event| format!("{event}\n"));
    let lines = stream::once(std::future::ready(Bytes::from(lines.collect::<String>())));
    let pause = if is_ending {
        Duration::ZERO
    } else {
        Duration::from_hours(1)
    };
    let silence = stream::once(async move {
        tokio::time::sleep(pause).await;
        Bytes::new()
    });
    let body = lines.chain(silence).map(Ok::<_, actix_web::Error>);
    let mut response = HttpResponse::Ok();
    response.content_type("application/x-ndjson");
    response.streaming(Box::pin(body))
}
