//! How often somebody may come: requests of a key or an address, and wrong keys of an address.
//!
//! Both tables are bounded: whoever is forgotten begins anew.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::Problem;

/// Callers that are remembered.
const MOST_CALLERS: usize = 10_000;
/// How long wrong keys are remembered.
const WINDOW: Duration = Duration::from_secs(60);
/// Right keys of one address that are remembered.
const MOST_RIGHT: usize = 64;

/// Who is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A key, by its SHA-256.
    Key([u8; 32]),
    Address(Option<IpAddr>),
}

/// Where somebody comes from, for counting. Whoever has one address of IPv6 has 2⁶⁴ of them.
pub(crate) fn place(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// Requests, each caller with a bucket that fills up with time.
#[derive(Debug)]
pub(crate) struct Rates {
    burst: f64,
    buckets: Mutex<HashMap<Caller, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
    /// When nothing is left to remember of it.
    full_at: Instant,
}

impl Rates {
    pub(crate) fn new(burst: u32) -> Self {
        Self {
            burst: f64::from(burst.max(1)),
            buckets: Mutex::default(),
        }
    }

    /// Takes one request out of the caller's bucket, which gains `rate` each second.
    pub(crate) fn take(&self, caller: Caller, rate: f64, now: Instant) -> Result<(), Problem> {
        if rate <= 0.0 {
            return Ok(());
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(&caller) {
            make_room(&mut buckets, |bucket| bucket.full_at, now);
        }
        let bucket = buckets.entry(caller).or_insert(Bucket {
            left: self.burst,
            at: now,
            full_at: now,
        });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * rate).min(self.burst);
        bucket.at = now;
        let granted = bucket.left >= 1.0;
        if granted {
            bucket.left -= 1.0;
        }
        // a day is as good as for ever, and fits into an instant
        let until_full = ((self.burst - bucket.left) / rate).min(86_400.0);
        bucket.full_at = now + Duration::from_secs_f64(until_full);
        if granted {
            return Ok(());
        }
        let wait = ((1.0 - bucket.left) / rate).ceil().clamp(1.0, 3600.0) as u16;
        Err(Problem::busy(
            "rate",
            "too many requests in too short a time",
            wait,
        ))
    }
}

/// Wrong keys of each address. After some different ones within a minute, the address is refused
/// until that minute is over; the same wrong key again is no new guess. Keys that were right from
/// there before stay welcome: behind a proxy all callers share one address.
#[derive(Debug)]
pub(crate) struct WrongKeys {
    most: usize,
    addresses: Mutex<HashMap<IpAddr, Tries>>,
}

#[derive(Debug)]
struct Tries {
    /// When the first of the wrong ones came.
    since: Instant,
    wrong: Vec<u64>,
    right: Vec<u64>,
    forget_at: Instant,
}

impl WrongKeys {
    /// `most` wrong keys in a minute; 0 means any number.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            addresses: Mutex::default(),
        }
    }

    /// Takes note of a key that came from a place, by its SHA-256, and refuses it where too many
    /// wrong ones came before.
    pub(crate) fn check(
        &self,
        place: Option<IpAddr>,
        digest: &[u8; 32],
        is_known: bool,
        now: Instant,
    ) -> Result<(), Problem> {
        let (Some(place), true) = (place, self.most > 0) else {
            return Ok(());
        };
        let [a, b, c, d, e, f, g, h, ..] = *digest;
        let key = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let mut addresses = (self.addresses.lock()).unwrap_or_else(PoisonError::into_inner);
        if !addresses.contains_key(&place) {
            make_room(&mut addresses, |tries| tries.forget_at, now);
        }
        let tries = addresses.entry(place).or_insert_with(|| Tries {
            since: now,
            wrong: Vec::new(),
            right: Vec::new(),
            forget_at: now,
        });
        let passed = now.saturating_duration_since(tries.since);
        if passed >= WINDOW {
            tries.wrong.clear();
        }
        if tries.wrong.len() >= self.most && !(is_known && tries.right.contains(&key)) {
            let wait = (WINDOW - passed).as_secs_f64().ceil() as u16;
            let message = "too many wrong API keys came from this address";
            return Err(Problem::busy("wrong-keys", message, wait.max(1)));
        }
        if is_known {
            // the last used is the last
            tries.right.retain(|&right| right != key);
            tries.right.push(key);
            if tries.right.len() > MOST_RIGHT {
                tries.right.remove(0);
            }
        } else if !tries.wrong.contains(&key) {
            if tries.wrong.is_empty() {
                tries.since = now;
            }
            tries.wrong.push(key);
        }
        tries.forget_at = now + WINDOW;
        Ok(())
    }
}

/// Makes room for one more: what has nothing to tell goes, or else what will first.
fn make_room<K: Copy + Eq + Hash, V>(
    table: &mut HashMap<K, V>,
    end: impl Fn(&V) -> Instant,
    now: Instant,
) {
    if table.len() < MOST_CALLERS {
        return;
    }
    table.retain(|_, value| end(value) > now);
    if table.len() >= MOST_CALLERS
        && let Some(first) = (table.iter().min_by_key(|(_, value)| end(value))).map(|(k, _)| *k)
    {
        table.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u8) -> Caller {
        Caller::Address(Some(IpAddr::from([127, 0, 0, n])))
    }

    #[test]
    fn the_rate_counts_for_each_caller() {
        let rates = Rates::new(3);
        let now = Instant::now();
        for _ in 0..3 {
            rates.take(peer(1), 2.0, now).unwrap();
        }
        let refused = rates.take(peer(1), 2.0, now).unwrap_err();
        // half a second until the next, told in whole seconds
        assert_eq!((refused.status, refused.retry_after), (429, Some(1)));
        rates.take(peer(2), 2.0, now).unwrap();
        rates.take(Caller::Key([1; 32]), 2.0, now).unwrap();
        let later = now + Duration::from_millis(500);
        rates.take(peer(1), 2.0, later).unwrap();
        assert!(rates.take(peer(1), 2.0, later).is_err());
        rates.take(peer(1), 0.0, later).unwrap();
    }

    #[test]
    fn tables_stay_small_whoever_comes() {
        let (rates, wrong) = (Rates::new(5), WrongKeys::new(2));
        let now = Instant::now();
        for n in 0..MOST_CALLERS as u32 + 50 {
            let address = IpAddr::from(n.to_be_bytes());
            // none of the buckets is full again
            let caller = Caller::Address(Some(address));
            rates.take(caller, 0.001, now).unwrap();
            wrong.check(Some(address), &[1; 32], false, now).unwrap();
        }
        assert_eq!(rates.buckets.lock().unwrap().len(), MOST_CALLERS);
        assert_eq!(wrong.addresses.lock().unwrap().len(), MOST_CALLERS);
    }

    #[test]
    fn wrong_keys_are_counted_by_address_and_right_ones_stay_welcome() {
        let wrong = WrongKeys::new(3);
        let now = Instant::now();
        let there = Some(IpAddr::from([10, 0, 0, 1]));
        let check = |key: u8, known, after| {
            let now = now + Duration::from_secs(after);
            let result = wrong.check(there, &[key; 32], known, now);
            result.map_err(|p| (p.status, p.code, p.retry_after))
        };
        check(100, true, 0).unwrap();
        // a client with an old key guesses nothing
        for _ in 0..10 {
            check(1, false, 0).unwrap();
        }
        check(2, false, 10).unwrap();
        check(3, false, 20).unwrap();
        let refused = Err((429, "wrong-keys", Some(35)));
        assert_eq!(check(4, false, 25), refused);
        assert_eq!(check(1, false, 25), refused);
        // a right guess among them gives nothing away
        assert_eq!(check(101, true, 25), refused);
        check(100, true, 25).unwrap();
        let elsewhere = Some(IpAddr::from([10, 0, 0, 2]));
        wrong.check(elsewhere, &[4; 32], false, now).unwrap();
        check(4, false, 61).unwrap();
        check(101, true, 61).unwrap();
        let any = WrongKeys::new(0);
        for key in 0..200 {
            any.check(there, &[key; 32], false, now).unwrap();
        }
    }

    #[test]
    fn an_address_of_ipv6_is_counted_by_its_network() {
        let of = |text: &str| place(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("10.0.0.1"), "10.0.0.1");
    }
}
