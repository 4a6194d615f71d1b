# Makes the environment with the newest Python that is here; civitas needs 3.12.
set -eu
for python in python3.14 python3.13 python3.12 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3; do
	if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
		"$python" -m venv venv
		exec venv/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements.txt
	fi
done
echo "no Python 3.12 or newer here" >&2
exit 1
