use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use hyperfleet_server_kit::clock::Clock;

/// A clock that only tests move.
#[derive(Clone)]
pub struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub fn at(time: &str) -> Self {
        let clock = Self(Arc::new(AtomicI64::new(0)));
        clock.set(time.parse().unwrap());
        clock
    }

    pub fn set(&self, time: DateTime<Utc>) {
        self.0.store(time.timestamp_micros(), Ordering::SeqCst);
    }

    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0.load(Ordering::SeqCst)).unwrap()
    }

    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    pub fn clock(&self) -> Clock {
        let clock = self.clone();
        Clock::new(move || clock.now())
    }
}
