//! Open connections: how many there may be, of one address and of all, and which go first.
//!
//! A connection without a request is idle, whether its client rests, is slow, or never spoke. When
//! there is no room for a new one, the longest idle one goes. If all are at work, one whose client
//! has not read for a while goes. A reply that its client does not read is given up after
//! `limits.write_seconds`.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Sleep;

use crate::config::Limits;

/// A connection without a request for less than this may just be sending one.
const IDLE: Duration = Duration::from_millis(200);
/// After this long without reading, a client may lose its connection to a new one.
const STALLED: Duration = Duration::from_secs(2);
/// How often it is looked for room while there is none.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// All that are open.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    /// 0 means no limit.
    most_of_address: usize,
    open: Mutex<Open>,
    /// Told when a connection ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: HashMap<u64, (IpAddr, Arc<Activity>)>,
    of_address: HashMap<IpAddr, usize>,
}

/// Why there is no place for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Its address has all that one may have, and all are at work.
    Address,
    /// All are taken and at work.
    All,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            most: limits.connections,
            most_of_address: limits.connections_per_address,
            open: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// Waits for a place; none if the address has too many already.
    pub(crate) async fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        loop {
            let ended = self.ended.notified();
            match self.try_admit(address, Instant::now()) {
                Ok(place) => return Some(place),
                Err(Refusal::Address) => return None,
                // the end of a request tells nobody, nor does time
                Err(Refusal::All) => {
                    let _ = tokio::time::timeout(FULL_PAUSE, ended).await;
                }
            }
        }
    }

    fn try_admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Result<Place, Refusal> {
        let mut open = self.open();
        let of_address = open.of_address.get(&address).copied().unwrap_or(0);
        if self.most_of_address > 0 && of_address >= self.most_of_address {
            open.close_one(Some(address), now).ok_or(Refusal::Address)?;
        } else if open.all.len() >= self.most {
            open.close_one(None, now).ok_or(Refusal::All)?;
        }
        let number = open.next;
        open.next += 1;
        let activity = Arc::new(Activity::new(now));
        open.all.insert(number, (address, Arc::clone(&activity)));
        *open.of_address.entry(address).or_default() += 1;
        Ok(Place {
            number,
            activity,
            connections: Arc::clone(self),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Tells the connection that is missed least to end, of an address or of all.
    fn close_one(&mut self, address: Option<IpAddr>, now: Instant) -> Option<()> {
        let spare = |(number, (place, activity)): (&u64, &(IpAddr, Arc<Activity>))| {
            if address.is_some_and(|address| address != *place) {
                return None;
            }
            Some((activity.spare(now)?, *number))
        };
        let (_, number) = self.all.iter().filter_map(spare).min()?;
        let activity = self.remove(number)?;
        activity.unwanted.notify_one();
        Some(())
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (address, activity) = self.all.remove(&number)?;
        if let Some(count) = self.of_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&address);
            }
        }
        Some(activity)
    }
}

/// A connection's place among all, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    activity: Arc<Activity>,
    connections: Arc<Connections>,
}

impl Place {
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // it may have been taken away before
        self.connections.open().remove(self.number);
        self.connections.ended.notify_one();
    }
}

/// What a connection is doing.
#[derive(Debug)]
pub(crate) struct Activity {
    now: Mutex<Doing>,
    unwanted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Doing {
    requests: usize,
    /// When the last request ended, or the connection began.
    idle_since: Instant,
    /// Since when the client has not read.
    stalled_since: Option<Instant>,
}

/// How little a connection would be missed, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spare {
    Idle(Instant),
    Stalled(Instant),
}

impl Activity {
    fn new(now: Instant) -> Self {
        let doing = Doing {
            requests: 0,
            idle_since: now,
            stalled_since: None,
        };
        Self {
            now: Mutex::new(doing),
            unwanted: Notify::new(),
        }
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spare(&self, now: Instant) -> Option<Spare> {
        let doing = self.doing();
        let idle = now.saturating_duration_since(doing.idle_since);
        match doing.stalled_since {
            Some(since) if now.saturating_duration_since(since) >= STALLED => {
                Some(Spare::Stalled(since))
            }
            None if doing.requests == 0 && idle >= IDLE => Some(Spare::Idle(doing.idle_since)),
            _ => None,
        }
    }

    /// A request begins; it ends when what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.doing().requests += 1;
        Busy(Arc::clone(self))
    }

    /// Waits until the connection has to make room.
    pub(crate) async fn unwanted(&self) {
        self.unwanted.notified().await;
    }
}

/// A request that runs.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut doing = self.0.doing();
        doing.requests -= 1;
        doing.idle_since = Instant::now();
    }
}

/// The body of a reply: the request runs as long as it is there.
pub(crate) struct Reply {
    body: Body,
    _busy: Busy,
}

impl Reply {
    pub(crate) fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl hyper::body::Body for Reply {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that fails where the other side does not read for too long.
pub(crate) struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
    limit: Duration,
    /// Runs while the other side does not read.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, activity: Arc<Activity>, limit: Duration) -> Self {
        Self {
            stream,
            activity,
            limit,
            timer: None,
        }
    }

    fn written(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            if self.timer.take().is_some() {
                self.activity.doing().stalled_since = None;
            }
            return written;
        }
        let timer = self.timer.get_or_insert_with(|| {
            self.activity.doing().stalled_since = Some(Instant::now());
            Box::pin(tokio::time::sleep(self.limit))
        });
        if timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        // what the system still holds for the other side goes too
        let _ = self.stream.set_zero_linger();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(most: usize, of_address: usize) -> Arc<Connections> {
        Connections::new(&Limits {
            connections: most,
            connections_per_address: of_address,
            ..Limits::default()
        })
    }

    fn address(n: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, n])
    }

    /// Whether it was told to make room.
    fn is_unwanted(place: &Place) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let unwanted = std::pin::pin!(place.activity.unwanted());
        unwanted.poll(&mut context).is_ready()
    }

    #[test]
    fn the_longest_idle_connection_makes_room_and_those_at_work_stay() {
        let all = connections(3, 0);
        let begun = Instant::now();
        let admit = |n: u64| all.try_admit(address(1), begun + Duration::from_millis(n));
        let (first, second) = (admit(1).unwrap(), admit(2).unwrap());
        let third = admit(3).unwrap();
        let busy = first.activity.begin();
        // all of them may just be sending a request
        assert_eq!(admit(201).unwrap_err(), Refusal::All);
        let fourth = admit(202).unwrap();
        assert!(is_unwanted(&second) && !is_unwanted(&first) && !is_unwanted(&third));
        let at_work = [third.activity.begin(), fourth.activity.begin()];
        assert_eq!(admit(1000).unwrap_err(), Refusal::All);
        // a reader that rests is the last resort
        first.activity.doing().stalled_since = Some(begun);
        assert_eq!(admit(1999).unwrap_err(), Refusal::All);
        let fifth = admit(2000).unwrap();
        assert!(is_unwanted(&first));
        // whoever was told to go has no place to give back
        drop((first, second, busy));
        assert_eq!(all.open().all.len(), 3);
        drop((third, fourth, fifth, at_work));
        assert!(all.open().all.is_empty() && all.open().of_address.is_empty());
    }

    #[test]
    fn an_address_has_its_share_and_makes_room_for_itself_alone() {
        let all = connections(4, 2);
        let now = Instant::now();
        let other = all.try_admit(address(2), now).unwrap();
        let first = all.try_admit(address(1), now).unwrap();
        let second = all.try_admit(address(1), now).unwrap();
        let _busy = first.activity.begin();
        let now = now + IDLE;
        let third = all.try_admit(address(1), now).unwrap();
        assert!(is_unwanted(&second) && !is_unwanted(&other));
        let _busy_too = third.activity.begin();
        let refused = all.try_admit(address(1), now);
        assert_eq!(refused.unwrap_err(), Refusal::Address);
        assert!(all.try_admit(address(2), now).is_ok());
    }
}
