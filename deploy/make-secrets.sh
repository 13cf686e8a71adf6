#!/bin/sh
# Makes what compose.yaml and the Kubernetes overlays take as secrets: passwords, a token, a certificate for PostgreSQL and Redis with an
# authority of its own. Each file is made once: a second run keeps what is there.
#   deploy/make-secrets.sh FOLDER [NAME ...]        NAME: other names by which the servers are reached
set -eu
umask 077
folder=${1:?the folder to write to}
shift
mkdir -p "$folder"
cd "$folder"
random() { openssl rand -hex 24; }
# The folder is closed; the files in it are read by the users of the containers that they are mounted into.
keep() { [ -s "$1" ] || { cat > "$1.new" && chmod 644 "$1.new" && mv "$1.new" "$1"; }; }

random | keep postgres_password
random | keep redis_password
random | keep replica_password
printf 'operator:%s\n' "$(random)" | keep makegood_tokens
printf 'postgres://makegood:%s@postgres:5432/makegood\n' "$(cat postgres_password)" | keep database_url
printf 'rediss://makegood:%s@redis:6380\n' "$(cat redis_password)" | keep redis_url

# Hashes: the file of users gives no password away. Makegood needs no administration; CONFIG GET and INFO say how durable the server is.
hash() { tr -d '\n' < "$1" | openssl dgst -sha256 -r | cut -d' ' -f1; }
keep users.acl <<ACL
user default off
user makegood on #$(hash redis_password) ~* &* +@all -@admin -@dangerous +info +config|get
user replica on #$(hash replica_password) +psync +replconf +ping
ACL

if ! [ -s tls.crt ]; then
  names="DNS:localhost,IP:127.0.0.1,DNS:redis,DNS:postgres"
  for name in "$@"; do names="$names,DNS:$name"; done
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=makegood stores" \
    -keyout ca.key -out ca.crt 2> /dev/null
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=redis" -keyout tls.key -out tls.csr 2> /dev/null
  printf 'subjectAltName=%s\n' "$names" > names
  openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile names -out tls.crt 2> /dev/null
  rm -f tls.csr names ca.srl
  chmod 644 ca.crt tls.crt tls.key
fi
