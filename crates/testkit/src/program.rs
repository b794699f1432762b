//! A program that a test starts, as a user does.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::until;

/// A running program. Killed if the test ends before it.
pub struct RunningProgram {
    child: Child,
    output: Arc<Mutex<String>>,
    errors: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl RunningProgram {
    pub fn start(command: Command) -> Self {
        Self::start_with_output(command, Stdio::piped())
    }

    /// With a chosen standard output.
    pub fn start_with_output(mut command: Command, output: Stdio) -> Self {
        command.stdout(output).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (output, errors) = (Arc::default(), Arc::default());
        let mut readers = vec![collect(child.stderr.take().unwrap(), &errors)];
        let pipe = child.stdout.take();
        readers.extend(pipe.map(|pipe| collect(pipe, &output)));
        Self {
            child,
            output,
            errors,
            readers,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Its standard output so far, then its standard error.
    pub fn output(&self) -> String {
        self.stdout() + &self.errors.lock().unwrap()
    }

    /// Waits until something is found in its output; fails if it ends before.
    pub async fn until_found<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let mut found = None;
        until(what, async || {
            let status = self.child.try_wait().unwrap();
            let said = self.output();
            found = find(&said);
            assert!(
                found.is_some() || status.is_none(),
                "it ended with {status:?}: {said}"
            );
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Waits until its output contains these words.
    pub async fn until_output(&mut self, words: &str) {
        let is_said = |said: &str| said.contains(words).then_some(());
        self.until_found(&format!("it says {words:?}"), is_said)
            .await;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits for its end, and for the last of its output.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("it ends", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        status.unwrap()
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Also ends a process that a signal has stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("a program of this test has said:\n{}", self.output());
        }
    }
}

/// Collects the output of a pipe.
fn collect(pipe: impl Read + Send + 'static, text: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let text = text.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut text = text.lock().unwrap();
            text.push_str(&line);
            text.push('\n');
        }
    })
}
