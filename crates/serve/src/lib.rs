//! The server: HTTP, web page, OpenAI-compatible and MCP doors. Its place is kept; nothing is built yet.
