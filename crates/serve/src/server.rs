//! Listening, and ending in order.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tower_service::Service;

use crate::api;
use crate::app::{App, Log};
use crate::config::ServeConfig;
use crate::error::{Error, Result};
use crate::guard::Peer;
use crate::mcp;

/// How long the head of a request may take, and how long an idle connection is kept.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// A pause after a failed accept: most often there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    let slots = Arc::new(Semaphore::new(app.config.limits.connections));
    let connections = GracefulShutdown::new();
    app.warm_up();
    loop {
        let accepted = async {
            // the semaphore is never closed
            let slot = Arc::clone(&slots).acquire_owned().await;
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            accepted = accepted => accepted,
            () = signals.come() => break,
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                (app.log)(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // small replies should not wait for more; without it they are only slower
        let _ = stream.set_nodelay(true);
        let connection = connection(stream, peer, &router);
        let watched = connections.watch(connection);
        let app = Arc::clone(&app);
        tokio::spawn(async move {
            app.connections.fetch_add(1, Ordering::Relaxed);
            // a connection that breaks is the other side's business
            let _ = watched.await;
            app.connections.fetch_sub(1, Ordering::Relaxed);
            drop(slot);
        });
    }
    drop(listener);
    (app.log)("stopping; requests that run come to their end");
    if tokio::time::timeout(limit, connections.shutdown())
        .await
        .is_err()
    {
        (app.log)("requests were broken off at the end of their time");
    }
    Ok(())
}

type Connection = http1::Connection<TokioIo<TcpStream>, Routes>;

fn connection(stream: TcpStream, peer: SocketAddr, router: &Router) -> Connection {
    let routes = Routes {
        router: router.clone(),
        peer: Peer(peer),
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
}

impl hyper::service::Service<Request<Incoming>> for Routes {
    type Response = <Router as Service<Request<Body>>>::Response;
    type Error = <Router as Service<Request<Body>>>::Error;
    type Future = <Router as Service<Request<Body>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer);
        self.router.clone().call(request)
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
    config: ServeConfig,
    log: Log,
    input: &mut dyn io::BufRead,
    output: &mut dyn io::Write,
) -> Result<()> {
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
