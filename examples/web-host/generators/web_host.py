"""From a few lines for each site to its page and virtual host, and to the programs that all sites share."""

from collections.abc import Iterator, Sequence

from lehr.sdk.generator import SourceFile, Yielded, asset, for_all_files

NGINX = ["nginx", "-p", "production/nginx", "-c", "nginx.conf", "-e", "stderr"]

CONFIGURATION = """\
worker_processes 2;
pid nginx.pid;
events {{ worker_connections 512; }}
http {{
    access_log off;
    default_type text/html;
    client_body_temp_path tmp/body;
    proxy_temp_path tmp/proxy;
    fastcgi_temp_path tmp/fastcgi;
    uwsgi_temp_path tmp/uwsgi;
    scgi_temp_path tmp/scgi;
    server {{
        listen 127.0.0.1:{nginx_port} default_server;
        location = /healthz {{ return 200 "ok\\n"; }}
        location / {{ return 404; }}
    }}
    include sites/*.conf;
}}
"""

SITE = """\
server {{
    listen 127.0.0.1:{nginx_port};
    server_name {host};
    root ../sites/{name};
    location = /visits {{ proxy_pass http://127.0.0.1:{visits_port}/{name}; }}
}}
"""

REDIS = """\
bind 127.0.0.1
port {redis_port}
save ""
appendonly yes
dir production/redis
"""


@for_all_files("{config,sites}/*.yaml")
def web_host(files: Sequence[SourceFile]) -> Iterator[Yielded]:
    host = next(file.yaml() for file in files if file.path == "config/host.yaml")
    sites = {file.path: file.yaml() for file in files if file.path != "config/host.yaml"}
    hosts = []
    for path, site in sites.items():
        name = path.removeprefix("sites/").removesuffix(".yaml")
        hosts.append(f"{name}/vhost")
        yield from _site(name, site, host)
    yield from _nginx(host, hosts)
    yield from _redis(host)
    yield from _visits(host)


def _site(name: str, site: dict, host: dict) -> Iterator[Yielded]:
    """The page of a site, and its virtual host. One that is `retired` is removed, its virtual host first."""
    addons = {"lehr.Labels": {"labels": {"site": name}}}
    if "team" in site:  # policies/owner refuses a virtual host without one
        addons["lehr.Owner"] = {"team": site["team"]}
    if site.get("retired"):
        addons["lehr.Turndown"] = {"reason": site["retired"], "fence_seconds": 0}
    page = {"path": f"production/sites/{name}/index.html", "content": f"<h1>{site['title']}</h1>\n"}
    yield asset(f"{name}/page", "lehr.File", page, addons)
    content = SITE.format(name=name, host=site["host"], **host)
    vhost = {"path": f"production/nginx/sites/{name}.conf", "content": content}
    order = {"lehr.DependsOn": {"assets": [f"{name}/page"]}}
    yield asset(f"{name}/vhost", "lehr.File", vhost, addons | order)


def _nginx(host: dict, hosts: list[str]) -> Iterator[Yielded]:
    """The program nginx, which loads new virtual hosts and drops removed ones without losing a request."""
    for folder in ("tmp", "sites"):
        path = f"production/nginx/{folder}"
        yield asset(f"nginx/{folder}", "lehr.Directory", {"path": path, "mode": "0755"})
    conf = {"path": "production/nginx/nginx.conf", "content": CONFIGURATION.format(**host)}
    yield asset("nginx/conf", "lehr.File", conf, {"lehr.DependsOn": {"assets": ["nginx/tmp", "nginx/sites"]}})
    test = " ".join([*NGINX, "-t", "-q"])
    process = {
        "command": [*NGINX, "-g", "daemon off;"],
        "ports": [{"name": "http", "base": host["nginx_port"]}],
        "health_url": "http://127.0.0.1:{port}/healthz",
        "reload_on": ["nginx/conf", *hosts],
        "reload_command": ["sh", "-c", f"{test} && kill -HUP $MAINPID"],
        "stop_signal": "SIGQUIT",
    }
    yield asset("nginx/process", "lehr.Process", process, {"lehr.Owner": {"team": "web"}})


def _redis(host: dict) -> Iterator[Yielded]:
    yield asset("redis/data", "lehr.Directory", {"path": "production/redis", "mode": "0700"})
    conf = {"path": "production/redis.conf", "content": REDIS.format(**host)}
    yield asset("redis/conf", "lehr.File", conf)
    process = {
        "command": ["redis-server", "production/redis.conf"],
        "ports": [{"name": "redis", "base": host["redis_port"]}],
        "health": {"tcp": "127.0.0.1:{port}"},
        "readiness": {"command": ["sh", "-c", "redis-cli -p {port} ping | grep -qx PONG"]},
        "start_timeout_seconds": 5,
        "restart_on": ["redis/conf"],
    }
    order = {"lehr.DependsOn": {"assets": ["redis/data"]}}
    yield asset("redis/process", "lehr.Process", process, order | {"lehr.Owner": {"team": "web"}})


def _visits(host: dict) -> Iterator[Yielded]:
    """The program that counts visits: in Redis, with a log in SQLite."""
    process = {
        "command": [
            "python3",
            "production/visits.py",
            "{port}",
            str(host["redis_port"]),
            "production/visits.sqlite",
        ],
        "ports": [{"name": "http", "base": host["visits_port"]}],
        "health_url": "http://127.0.0.1:{port}/healthz",
        "restart_on": ["visits/program"],
    }
    order = {"lehr.DependsOn": {"assets": ["redis/process", "visits/schema"]}}
    yield asset("visits/process", "lehr.Process", process, order | {"lehr.Owner": {"team": "web"}})
