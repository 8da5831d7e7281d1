//! Language models behind HTTP, against a server that sends what a test tells it to.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wherefore_model::Error;
use wherefore_model::language::{
    Completion, Decoding, Finish, LanguageModel, Message, Progress, Prompt, Remote, Role, unwatched,
};

/// What the server does with one connection.
type Reply = Box<dyn Fn(&mut TcpStream) + Send>;

struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Serves one connection with each reply, in their order, and the last one again and again.
fn serve(replies: Vec<Reply>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for (i, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            seen.lock().unwrap().push(request(&stream));
            replies[i.min(replies.len() - 1)](&mut stream);
        }
    });
    Server { url, requests }
}

fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        text += &line;
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    text + std::str::from_utf8(&body).unwrap()
}

fn says(status: &'static str, kind: &'static str, body: impl Into<Vec<u8>>) -> Reply {
    let body = body.into();
    Box::new(move |stream| {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
        // whoever hangs up has seen enough
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&body);
    })
}

fn events(body: impl Into<Vec<u8>>) -> Reply {
    says("200 OK", "text/event-stream", body)
}

const GOOD: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"ans: Lou\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\" Seal\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":5}}\n\n\
    data: [DONE]\n\n";

fn ask(server: &Server, options: &str) -> Result<Completion, Error> {
    let prompt = Prompt::Chat(vec![Message::new(Role::User, "Who?")]);
    let name = format!("{}#tiny?backoff_ms=1&timeout_ms=400&{options}", server.url);
    Remote::open(&name)?.complete(&prompt, &Decoding::default(), &mut unwatched)
}

#[test]
fn a_stream_is_told_as_it_comes_and_counted() {
    let server = serve(vec![events(GOOD)]);
    let model = Remote::open(&format!("{}#tiny", server.url)).unwrap();
    let mut heard = Vec::new();
    let prompt = Prompt::Chat(vec![Message::new(Role::User, "Who?")]);
    let completion = model
        .complete(&prompt, &Decoding::default(), &mut |progress| {
            if let Progress::Text(text) = progress {
                heard.push(text.to_owned());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(heard, ["ans: Lou", " Seal"]);
    assert_eq!(completion.text, "ans: Lou Seal");
    assert_eq!(
        (completion.prompt_tokens, completion.completion_tokens),
        (12, 5)
    );
    let requests = server.requests.lock().unwrap();
    assert!(requests[0].starts_with("POST /v1/chat/completions "));
    assert!(
        requests[0].contains("\"model\":\"tiny\""),
        "{}",
        requests[0]
    );
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"message":{"content":"ans: A"},"finish_reason":"length"}]}"#;
    let server = serve(vec![says(
        "200 OK",
        "application/json; charset=utf-8",
        body,
    )]);
    let completion = ask(&server, "").unwrap();
    assert_eq!(
        (completion.text.as_str(), completion.finish),
        ("ans: A", Finish::Length)
    );
    assert!(completion.prompt_tokens > 0 && completion.completion_tokens > 0);
}

#[test]
fn busy_servers_are_asked_again_and_their_wait_is_kept() {
    let wait = "429 Too Many Requests\r\nRetry-After: 0.2";
    let server = serve(vec![
        says("503 Service Unavailable", "text/plain", "busy"),
        says(wait, "application/json", "{}"),
        events(GOOD),
    ]);
    let begun = Instant::now();
    assert_eq!(ask(&server, "").unwrap().text, "ans: Lou Seal");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(server.requests.lock().unwrap().len(), 3);
}

#[test]
fn in_the_end_and_for_what_cannot_pass_the_refusal_is_told() {
    let busy = serve(vec![says(
        "500 Oops",
        "application/json",
        r#"{"error":"no room"}"#,
    )]);
    let error = ask(&busy, "retries=2").unwrap_err();
    assert!(
        matches!(&error, Error::ServerRefused { status: 500, reason, .. } if reason == "no room"),
        "{error}"
    );
    assert_eq!(busy.requests.lock().unwrap().len(), 3);

    let locked = serve(vec![says("401 Unauthorized", "text/plain", "no key")]);
    let error = ask(&locked, "").unwrap_err();
    assert!(error.hint().unwrap().contains("WHEREFORE_API_KEY"));
    assert_eq!(locked.requests.lock().unwrap().len(), 1);

    let patient = "429 Too Many Requests\r\nRetry-After: 86400";
    let begun = Instant::now();
    let error = ask(&serve(vec![says(patient, "text/plain", "")]), "").unwrap_err();
    assert!(matches!(error, Error::ServerRefused { status: 429, .. }));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn whatever_else_a_server_does_is_a_clear_error() {
    let rest = GOOD
        .rsplit_once("data: {\"choices\":[{\"delta\":{\"content\":\" Seal")
        .unwrap()
        .0;
    let endless: Reply = Box::new(|stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"na \"}}]}\n\n";
        while stream.write_all(piece.as_bytes()).is_ok() {}
    });
    let silent: Reply = Box::new(|_| std::thread::sleep(Duration::from_secs(2)));
    let stuck: Reply = Box::new(|stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: wait\n\n";
        let _ = stream.write_all(head.as_bytes());
        std::thread::sleep(Duration::from_secs(2));
    });
    for (reply, told) in [
        (events(rest), "closed before the end"),
        (
            says("200 OK", "text/html", "<html>Sign in</html>"),
            "`text/html`",
        ),
        (says("200 OK", "application/json", "<html>"), "no JSON"),
        (
            says(
                "200 OK",
                "application/json",
                r#"{"error":{"message":"no such model"}}"#,
            ),
            "no such model",
        ),
        (
            events("data: {\"error\":{\"message\":\"out of memory\"}}\n\n"),
            "out of memory",
        ),
        (
            events(&b"data: {\"choices\":[{\"text\":\"\xff\xfe\"}]}\n\n"[..]),
            "no UTF-8",
        ),
        (
            says("200 OK", "application/json", &b"\xff\xfe{}"[..]),
            "no UTF-8",
        ),
        (
            says("200 OK", "application/json", r#"{"choices":[]}"#),
            "no choice",
        ),
        (
            says("200 OK", "application/json", r#"{"choices":[{}]}"#),
            "empty choice",
        ),
        (
            events(
                "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\n",
            ),
            "empty choice",
        ),
        (
            says("200 OK", "application/json", r#"{"choices":7}"#),
            "another kind",
        ),
        (endless, "goes on after"),
        (silent, "no reply in"),
        (stuck, "fell silent"),
        (Box::new(|_| {}), "cannot be reached"),
    ] {
        let error = ask(&serve(vec![reply]), "retries=0").unwrap_err();
        assert!(error.to_string().contains(told), "{told}: {error}");
        assert!(error.hint().is_some(), "{told}");
        assert!(!error.is_internal(), "{told}");
    }
}

#[test]
fn nobody_there_is_told_after_the_retries() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = Server {
        url: format!("http://{free}"),
        requests: Arc::default(),
    };
    let error = ask(&server, "retries=1").unwrap_err();
    assert!(matches!(error, Error::ServerUnreachable { .. }), "{error}");
}

#[test]
fn a_time_limit_keeps_what_came_in_time() {
    let server = serve(vec![Box::new(|stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n";
        let _ = stream.write_all((head.to_owned() + piece).as_bytes());
        std::thread::sleep(Duration::from_secs(3));
    })]);
    let model = Remote::open(&format!("{}#tiny?retries=0", server.url)).unwrap();
    let decoding = Decoding {
        time_limit: Some(Duration::from_millis(300)),
        ..Decoding::default()
    };
    let begun = Instant::now();
    let completion = model
        .complete(&Prompt::Plain("a".into()), &decoding, &mut unwatched)
        .unwrap();
    assert_eq!(
        (completion.text.as_str(), completion.finish),
        ("one", Finish::Stopped)
    );
    assert!(begun.elapsed() < Duration::from_secs(2));
}

/// Sends the head at once, and then a byte each time, for ever.
fn drips(kind: &'static str, byte: &'static [u8]) -> Reply {
    Box::new(move |stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(byte).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

#[test]
fn a_server_that_drips_is_an_error_when_the_time_of_the_call_is_over() {
    let head: Reply = Box::new(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    for (reply, told) in [
        (drips("text/event-stream", b":"), "did not end within"),
        (
            drips("text/event-stream", b": wait\n\n"),
            "did not end within",
        ),
        (drips("application/json", b" "), "did not end within"),
        (head, "no reply in"),
    ] {
        let begun = Instant::now();
        // no single wait is longer than `timeout_ms`
        let error = ask(&serve(vec![reply]), "retries=3&total_ms=300").unwrap_err();
        assert!(error.to_string().contains(told), "{told}: {error}");
        assert!(error.hint().is_some() && !error.is_internal(), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{told}");
    }
}

#[test]
fn all_attempts_share_the_time_of_the_call() {
    let busy = || {
        says(
            "503 Service Unavailable\r\nRetry-After: 0.2",
            "text/plain",
            "",
        )
    };
    let server = serve(vec![busy()]);
    let begun = Instant::now();
    let error = ask(&server, "retries=1000&total_ms=500").unwrap_err();
    assert!(
        matches!(error, Error::ServerRefused { status: 503, .. }),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
}
