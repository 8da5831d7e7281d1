//! Listening, and ending in order.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower_service::Service;

use crate::api;
use crate::app::App;
use crate::config::ServeConfig;
use crate::connections::{Activity, Connections, Reply, Watched};
use crate::error::{Error, Result};
use crate::guard::Peer;
use crate::log::Log;
use crate::mcp;
use crate::problem::Problem;
use crate::throttle::place;

/// How long the head of a request may take, and how long an idle connection is kept.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// A pause after a failed accept: most often there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked whether the file of keys has changed.
const KEYS_PAUSE: Duration = Duration::from_millis(500);

/// A server that is bound to its address and has everything open.
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    stop: watch::Sender<bool>,
}

/// Stops a server from elsewhere.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Takes no more requests, and lets those that run come to their end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Opens all graphs, methods and models, and binds the address. `log` takes the lines of the
    /// log.
    pub fn open(config: ServeConfig, log: Log) -> Result<Self> {
        let address = config.listen;
        let app = Arc::new(App::open(config, log)?);
        let listener =
            TcpListener::bind(address).map_err(|source| Error::Listen { address, source })?;
        let (stop, _) = watch::channel(false);
        Ok(Self {
            app,
            listener,
            stop,
        })
    }

    /// Where it listens; the port is known here even if 0 was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What stops it, beside the signals `SIGINT` and `SIGTERM`.
    pub fn stopper(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Serves until it is stopped. Requests that run are given `limits.shutdown_seconds`.
    pub fn run(self) -> Result<()> {
        let system = |action| move |source| Error::System { action, source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(system("start the server's threads"))?;
        let limit = Duration::from_secs_f64(self.app.config.limits.shutdown_seconds);
        let app = Arc::clone(&self.app);
        let done = runtime.block_on(self.serve(limit));
        // whoever still writes a reply that nobody waits for is left behind
        runtime.shutdown_timeout(Duration::from_millis(100));
        let (ended, wait) = mpsc::channel();
        std::thread::spawn(move || {
            app.finish();
            // nobody listens after the limit
            let _ = ended.send(());
        });
        let _ = wait.recv_timeout(limit);
        done
    }

    async fn serve(self, limit: Duration) -> Result<()> {
        let system = |action| move |source| Error::System { action, source };
        self.listener
            .set_nonblocking(true)
            .and_then(|()| tokio::net::TcpListener::from_std(self.listener))
            .map_err(system("listen"))
            .map(|listener| (listener, self.app, self.stop))
            .map(|(listener, app, stop)| accept(listener, app, stop, limit))?
            .await
    }
}

async fn accept(
    listener: tokio::net::TcpListener,
    app: Arc<App>,
    stop: watch::Sender<bool>,
    limit: Duration,
) -> Result<()> {
    let system = |action| move |source| Error::System { action, source };
    let mut stopped = stop.subscribe();
    let mut signals = Signals::new().map_err(system("listen for signals"))?;
    let router = api::router(Arc::clone(&app));
    let connections = Connections::new(&app.config.limits);
    let write_time = Duration::from_secs_f64(app.config.limits.write_seconds);
    let running = GracefulShutdown::new();
    let keys = tokio::spawn(follow_keys(Arc::clone(&app)));
    app.warm_up();
    loop {
        let admitted = async {
            let (stream, peer) = listener.accept().await?;
            let admitted = connections.admit(place(peer.ip())).await;
            io::Result::Ok((stream, peer, admitted))
        };
        let admitted = tokio::select! {
            admitted = admitted => admitted,
            () = signals.come() => break,
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        let (stream, peer, admitted) = match admitted {
            Ok((stream, peer, Some(admitted))) => (stream, peer, admitted),
            Ok((stream, _, None)) => {
                refuse(stream);
                continue;
            }
            Err(error) => {
                (app.log)(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // small replies should not wait for more; without it they are only slower
        let _ = stream.set_nodelay(true);
        let activity = Arc::clone(admitted.activity());
        let stream = Watched::new(stream, Arc::clone(&activity), write_time);
        let connection = connection(stream, peer, &router, &activity);
        let watched = running.watch(connection);
        let app = Arc::clone(&app);
        tokio::spawn(async move {
            app.connections.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                // a connection that breaks is the other side's business
                _ = watched => {}
                () = activity.unwanted() => {}
            }
            app.connections.fetch_sub(1, Ordering::Relaxed);
            drop(admitted);
        });
    }
    keys.abort();
    drop(listener);
    (app.log)("stopping; requests that run come to their end");
    if tokio::time::timeout(limit, running.shutdown())
        .await
        .is_err()
    {
        (app.log)("requests were broken off at the end of their time");
    }
    Ok(())
}

/// Tells whoever has too many connections, as far as that can be told at once.
fn refuse(stream: TcpStream) {
    let problem = Problem::busy(
        "connections",
        "this address has as many connections as it may have",
        1,
    );
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\n\
         retry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // it does not block; whoever cannot be told sees the connection end
    let Ok(mut stream) = stream.into_std() else {
        return;
    };
    // what was sent and not read would break off the reply
    let _ = stream.read(&mut [0; 16 << 10]);
    let _ = stream.write_all((head + &body).as_bytes());
}

/// Reads the file of keys again when it changes, and on `SIGHUP`.
async fn follow_keys(app: Arc<App>) {
    let mut hangup = Hangup::new();
    loop {
        let asked = tokio::select! {
            () = hangup.come() => true,
            () = tokio::time::sleep(KEYS_PAUSE) => false,
        };
        let keys = app.guard.keys();
        let Some(path) = keys.file() else {
            if asked {
                (app.log)("there is no `keys_file` to read again");
            }
            continue;
        };
        match keys.reload(asked) {
            Ok(None) => {}
            Ok(Some(count)) => {
                let path = path.display();
                (app.log)(&format!("read `{path}` again; there are {count} API keys"));
            }
            Err(error) => {
                let mut line = format!("API keys stay as they were: {error}");
                if let Some(cause) = std::error::Error::source(&error) {
                    line += &format!(": {cause}");
                }
                (app.log)(&line);
            }
        }
    }
}

/// What tells a process to read its settings again.
struct Hangup {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangup {
    fn new() -> Self {
        Self {
            // where it cannot be heard, changes are still seen
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    async fn come(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

type Connection = http1::Connection<TokioIo<Watched>, Routes>;

fn connection(
    stream: Watched,
    peer: SocketAddr,
    router: &Router,
    activity: &Arc<Activity>,
) -> Connection {
    let routes = Routes {
        router: router.clone(),
        peer: Peer(peer),
        activity: Arc::clone(activity),
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), routes)
}

/// The router, told who is at the other end.
#[derive(Clone)]
struct Routes {
    router: Router,
    peer: Peer,
    activity: Arc<Activity>,
}

impl hyper::service::Service<Request<Incoming>> for Routes {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let busy = self.activity.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer);
        let response = self.router.clone().call(request);
        Box::pin(async move { Ok(response.await?.map(|body| Reply::new(body, busy))) })
    }
}

/// What tells a process to end.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(unix)]
    async fn come(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn come(&mut self) {
        // where signals cannot be heard, the process is ended from outside
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Speaks MCP over `input` and `output` until `input` ends.
pub fn speak_mcp(
    mut config: ServeConfig,
    log: Log,
    input: &mut dyn io::BufRead,
    output: &mut dyn io::Write,
) -> Result<()> {
    // nobody is listened to, so that nothing need be guarded
    config.listen = ServeConfig::default().listen;
    config.keys_file = None;
    let app = App::open(config, log)?;
    let spoken = mcp::over_lines(&app, input, output);
    app.finish();
    match spoken {
        // whoever spoke with us has gone
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|source| Error::System {
            action: "speak with the other side",
            source,
        }),
    }
}
