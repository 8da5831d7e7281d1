# Sourced: `within COMMAND...` runs a command within $MEMORY (2G, say), its page cache included, by
# a memory control group of either version, or systemd; without $MEMORY, as it is. `forget FILE...`
# drops the cached pages of files. Needs root where MEMORY is set, GNU coreutils.
group=
enter() {
    echo "$BASHPID" > "$group/cgroup.procs"
    exec "$@"
}

within() {
    if [ -n "$group" ]; then
        (enter "$@")
    elif [ -n "${MEMORY:-}" ]; then
        systemd-run --quiet --scope -p "MemoryMax=$MEMORY" -p MemorySwapMax=0 "$@"
    else
        "$@"
    fi
}

# the most that the group took so far, page cache included, and how often it was at its limit
within_report() {
    for file in memory.peak memory.max_usage_in_bytes memory.failcnt memory.events; do
        if [ -n "$group" ] && [ -f "$group/$file" ]; then echo "$file: $(tr '\n' ' ' < "$group/$file")"; fi
    done
}

forget() {
    for file in "$@"; do
        if [ -f "$file" ]; then dd if="$file" iflag=nocache count=0 status=none; fi
    done
}

if [ -n "${MEMORY:-}" ]; then
    bytes=$(numfmt --from=iec "$MEMORY")
    if [ -f /sys/fs/cgroup/cgroup.controllers ] && mkdir /sys/fs/cgroup/wherefore-$$ 2> /dev/null; then
        group=/sys/fs/cgroup/wherefore-$$
        echo +memory > /sys/fs/cgroup/cgroup.subtree_control
        echo "$bytes" > "$group/memory.max"
        echo 0 > "$group/memory.swap.max"
    elif mkdir /sys/fs/cgroup/memory/wherefore-$$ 2> /dev/null; then
        group=/sys/fs/cgroup/memory/wherefore-$$
        echo "$bytes" > "$group/memory.limit_in_bytes"
    elif [ "$(systemctl is-system-running 2> /dev/null)" != running ]; then
        echo "cannot limit the memory: no control group can be made here, and no systemd runs; start as root" >&2
        exit 2
    fi
    trap '[ -z "$group" ] || rmdir "$group" 2> /dev/null || true' EXIT
fi
