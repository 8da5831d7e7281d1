# A static binary, alone in an empty image. `docs/packaging.md` says how to use it.
FROM rust:1-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /source
COPY . .
RUN cargo build --release --locked && strip target/release/wherefore

FROM scratch
COPY --from=build /source/target/release/wherefore /wherefore
ENV XDG_CACHE_HOME=/tmp
WORKDIR /tmp
EXPOSE 7878
USER 65532:65532
ENTRYPOINT ["/wherefore"]
CMD ["demo", "--serve", "--listen", "0.0.0.0:7878"]
