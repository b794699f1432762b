use std::sync::mpsc::{self, Receiver, Sender};

use super::*;

/// The next behaviour of the reader.
enum Let {
    Write,
    Fail,
}

/// A reader whose progress the test controls, and which keeps its input.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Vec<u8>>>);

struct Sink {
    taken: Taken,
    lets: Receiver<Let>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without the test's decisions it takes everything.
        if let Ok(Let::Fail) = self.lets.recv() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.taken.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Taken {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn queue() -> (Queue, Taken, Sender<Let>) {
    let (sender, lets) = mpsc::channel();
    let taken = Taken::default();
    let sink = Sink {
        taken: taken.clone(),
        lets,
    };
    (Queue::start(sink).unwrap(), taken, sender)
}

/// A queue whose writer waits for the reader.
fn stalled() -> (Queue, Taken, Sender<Let>) {
    let (queue, taken, lets) = queue();
    queue.push(b"first\n");
    while !queue.lock().waiting.is_empty() {
        thread::yield_now();
    }
    (queue, taken, lets)
}

/// A line of this length.
fn line(letter: char, bytes: usize) -> Vec<u8> {
    let mut line = letter.to_string().repeat(bytes - 1).into_bytes();
    line.push(b'\n');
    line
}

#[test]
fn a_stalled_reader_blocks_no_writer_and_the_queue_is_bounded() {
    let (queue, taken, lets) = stalled();
    let one = line('a', 1000);
    for _ in 0..5000 {
        queue.push(&one);
    }
    let state = queue.lock();
    assert!(state.waiting.len() <= WAITING_BYTES_MAX);
    let (came, dropped) = (state.came / 1000, state.dropped);
    drop(state);
    assert_eq!(came + dropped, 5000);
    assert!(dropped > 0);
    assert!(came <= WAITING_BYTES_MAX as u64 / 1000, "{came}");
    assert_eq!(taken.text(), "");
    drop(lets);
    assert!(queue.flush());
    assert_eq!(taken.text().lines().count() as u64, came + 1);
}

#[test]
fn a_flush_gives_a_reader_that_stalls_up_once_and_waits_for_one_that_reads() {
    let (queue, taken, lets) = queue();
    queue.push(&line('a', 10));
    let since = Instant::now();
    assert!(!queue.flush());
    assert!(since.elapsed() >= PATIENCE);
    let since = Instant::now();
    assert!(!queue.flush(), "nobody has read since");
    assert!(since.elapsed() < PATIENCE);
    lets.send(Let::Write).unwrap();
    // A reader that continues is waited for again.
    while queue.lock().left == 0 {
        thread::yield_now();
    }
    queue.push(&line('b', 10));
    lets.send(Let::Write).unwrap();
    assert!(queue.flush());
    assert_eq!(taken.text(), "aaaaaaaaa\nbbbbbbbbb\n");
}

#[test]
fn last_words_find_room_where_there_is_none() {
    let (queue, taken, lets) = stalled();
    let one = line('a', WAITING_BYTES_MAX);
    for _ in 0..3 {
        queue.push(&one);
    }
    assert!(queue.lock().dropped > 0);
    queue.push(b"lost\n");
    queue.push_last(b"last\n");
    drop(lets);
    assert!(queue.flush());
    assert!(taken.text().ends_with("a\nlast\n"));
    assert!(!taken.text().contains("lost"));
}

#[test]
fn a_line_longer_than_all_the_room_is_dropped_and_does_not_block_the_next() {
    let (queue, taken, lets) = queue();
    drop(lets);
    queue.push(&line('a', WAITING_BYTES_MAX + 1));
    let since = Instant::now();
    while queue.lock().dropped > 0 {
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "the loss is not logged"
        );
        thread::yield_now();
    }
    queue.push(b"next\n");
    assert!(queue.flush());
    assert_eq!(taken.text(), "next\n");
}

#[test]
fn what_cannot_be_written_is_counted_and_does_not_end_the_log() {
    let (queue, taken, lets) = queue();
    lets.send(Let::Fail).unwrap();
    queue.push(b"one\n");
    assert!(queue.flush(), "nobody waits for what cannot be written");
    assert_eq!(queue.lock().failed, 1);
    drop(lets);
    queue.push(b"two\n");
    assert!(queue.flush());
    assert_eq!(taken.text(), "two\n");
    assert_eq!(queue.lock().failed, 0, "the failure is logged");
}

#[test]
fn captured_lines_are_not_written() {
    let (queue, taken, lets) = queue();
    drop(lets);
    let captured = said(|| queue.write(b"kept\n"));
    assert_eq!(captured, b"kept\n");
    queue.write(b"written\n");
    assert!(queue.flush());
    assert_eq!(taken.text(), "written\n");
}
