# A static binary, alone in an empty image. `docs/packaging.md` says how to use it.
FROM rust:1.95.0-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked && strip target/dist/wherefore
# the image: the binary, how it serves, and a folder that anybody may unpack the sample graph into
RUN mkdir -p /image/tmp && chmod 1777 /image/tmp \
    && cp target/dist/wherefore /image/ && cp packaging/container.toml /image/serve.toml

FROM scratch
COPY --from=build /image/ /
ENV XDG_CACHE_HOME=/tmp
# names that the server is called by, beside localhost and addresses, with commas in between
ENV WHEREFORE_HOSTS=""
WORKDIR /tmp
EXPOSE 7878
USER 65532:65532
ENTRYPOINT ["/wherefore"]
CMD ["serve", "--graph", "@world", "--config", "/serve.toml"]
