//! Server-sent events: each as soon as it happens, and never in the way of whoever makes them.
//!
//! A job sends its events into a channel without waiting, so that a slow reader keeps memory and
//! not a thread. When the reader goes, the channel closes, and the job knows.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::app::out_of_time;
use crate::error::Result;
use crate::problem::Problem;

/// A comment is sent in pauses, so that nobody in between takes the connection for dead.
const PAUSE: Duration = Duration::from_secs(10);

type Finish<T> = Box<dyn FnOnce(Result<T, Problem>) -> String + Send>;

/// A stream of events that ends with the job's result.
pub(crate) struct Frames<T> {
    events: mpsc::UnboundedReceiver<String>,
    result: Option<oneshot::Receiver<Result<T, Problem>>>,
    finish: Option<Finish<T>>,
    deadline: Instant,
    begun: Instant,
    ticks: Interval,
}

impl<T: Send + 'static> Frames<T> {
    /// Sends `events` as they come; when their sender is gone, `finish` says how the stream ends.
    pub(crate) fn new(
        events: mpsc::UnboundedReceiver<String>,
        result: oneshot::Receiver<Result<T, Problem>>,
        deadline: Instant,
        finish: impl FnOnce(Result<T, Problem>) -> String + Send + 'static,
    ) -> Self {
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        Self {
            events,
            result: Some(result),
            finish: Some(Box::new(finish)),
            deadline,
            begun: Instant::now(),
            ticks,
        }
    }

    /// The reply that carries the stream.
    pub(crate) fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            // proxies are asked not to wait for the end
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (headers, Body::from_stream(self)).into_response()
    }

    fn end(&mut self, result: Result<T, Problem>) -> Option<String> {
        self.result = None;
        self.finish.take().map(|finish| finish(result))
    }
}

impl<T: Send + 'static> Stream for Frames<T> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let ready = |text: String| Poll::Ready(Some(Ok(Bytes::from(text))));
        if self.result.is_none() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(Some(event)) = self.events.poll_recv(context) {
            self.ticks.reset();
            return ready(event);
        }
        if let Some(result) = self.result.as_mut()
            && let Poll::Ready(result) = Pin::new(result).poll(context)
        {
            // whatever was sent before the result comes before it
            if let Ok(event) = self.events.try_recv() {
                let (send, again) = oneshot::channel();
                let _ = send.send(result.unwrap_or_else(|_| Err(gone())));
                self.result = Some(again);
                context.waker().wake_by_ref();
                return ready(event);
            }
            let result = result.unwrap_or_else(|_| Err(gone()));
            return match self.end(result) {
                Some(last) => ready(last),
                None => Poll::Ready(None),
            };
        }
        if Instant::now() > self.deadline {
            let limit = self.deadline - self.begun;
            return match self.end(Err(out_of_time(limit))) {
                Some(last) => ready(last),
                None => Poll::Ready(None),
            };
        }
        match self.ticks.poll_tick(context) {
            Poll::Ready(_) => {
                context.waker().wake_by_ref();
                ready(":\n\n".into())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

fn gone() -> Problem {
    Problem::internal("a job ended without a result")
}

/// One event. JSON has no line breaks, so that it is one line of data.
pub(super) fn event(name: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).expect("texts, numbers and lists are JSON");
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn collected(events: Vec<&str>, result: Result<u32, Problem>, deadline: Instant) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (send, receive) = mpsc::unbounded_channel();
            let (done, ended) = oneshot::channel();
            for text in events {
                send.send(text.to_owned()).unwrap();
            }
            done.send(result).unwrap();
            let frames = Frames::new(receive, ended, deadline, |result| match result {
                Ok(number) => event("end", &number),
                Err(problem) => event("error", &problem.code),
            });
            let body = frames.into_response().into_body();
            let bytes = body.collect().await.unwrap().to_bytes();
            String::from_utf8(bytes.to_vec()).unwrap()
        })
    }

    #[test]
    fn events_come_in_order_and_the_result_last() {
        let later = Instant::now() + Duration::from_secs(60);
        let text = collected(vec!["a\n\n", "b\n\n"], Ok(7), later);
        assert_eq!(text, "a\n\nb\n\nevent: end\ndata: 7\n\n");
        let text = collected(vec!["a\n\n"], Err(Problem::internal("x")), later);
        assert_eq!(text, "a\n\nevent: error\ndata: \"internal\"\n\n");
    }
}
