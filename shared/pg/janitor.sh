# Arguments: a signal or nothing, the server's process, a directory to remove or nothing.
# A line on the standard input dismisses; its end means that the process which started the server is gone.
read -r word && exit 0
[ -n "$1" ] && kill -s "$1" "$2" 2>/dev/null
tries=0
while kill -0 "$2" 2>/dev/null && [ "$tries" -lt 300 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
[ -n "$3" ] && rm -rf -- "$3"
exit 0
