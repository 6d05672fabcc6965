# Shared by up and down: where the throw-away cluster lives, and how a daemon of it is recognised.
# Sourced, never run.

RUN=${PLUMBLINE_CLUSTER_DIR:-/tmp/plumbline-cluster-$(id -u)} # short: a unix socket path has at most 107 bytes
CONF=$RUN/etc/slurm.conf
DEFAULT_CONF=/etc/slurm/slurm.conf
export PATH=$PATH:/usr/sbin:/sbin
SELF=$(basename "$0")

fail() { # fail MESSAGE... : one line on stderr, then the tails of the daemons' logs
    echo "$SELF: $*" >&2
    local log
    for log in "$RUN"/log/*.log; do
        if [ -s "$log" ]; then
            echo "--- tail of $log" >&2
            tail -n 5 "$log" >&2
        fi
    done
    exit 1
}

pid_of() { # pid_of PIDFILE PROGRAM : prints the pid when the file names a live process of that program
    local pid
    [ -s "$1" ] || return 1
    pid=$(tr -dc 0-9 <"$1")
    is_program "$pid" "$2" && echo "$pid"
}

is_program() { # is_program PID PROGRAM : a recycled pid or a zombie does not count
    [ -n "$1" ] && [[ "$(cat "/proc/$1/comm" 2>/dev/null)" == "$2"* ]] &&
        [ "$(awk '{print $3}' "/proc/$1/stat" 2>/dev/null)" != Z ]
}

wait_for() { # wait_for SECONDS COMMAND... : polls ten times a second; each try has its own limit
    local tries=$(($1 * 10))
    shift
    while ((tries-- > 0)); do
        timeout 5 "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    return 1
}
