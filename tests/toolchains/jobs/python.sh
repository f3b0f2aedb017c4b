# user only: it takes long, and nothing in it asks who runs it
# needs: python3 python3:venv,ensurepip
python3 -m venv env
. env/bin/activate
python - <<'P'
import zipfile
with zipfile.ZipFile('greeter-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('greeter.py', 'def greet(who):\n    return "hello " + who\n\ndef main():\n    print(greet("wheel"))\n')
    info = 'greeter-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'entry_points.txt', '[console_scripts]\ngreet=greeter:main\n')
    wheel.writestr(info + 'RECORD', 'greeter.py,,\n')
P
pip install -q --disable-pip-version-check --no-index ./greeter-1.0-py3-none-any.whl
greet
cat > test_it.py <<'P'
import subprocess, tempfile, unittest, greeter
class Greets(unittest.TestCase):
    def test_says(self): self.assertEqual(greeter.greet('x'), 'hello x')
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(subprocess.run(['ls', '-A', folder], capture_output=True).stdout, b'')
P
python -m unittest -q 2>&1 | grep -E '^(Ran|OK)' | sed 's/ in .*//'
python -m compileall -q test_it.py && python -c 'import sqlite3, ssl, ctypes, zlib; print(sqlite3.connect(":memory:").execute("select 1").fetchone())'
pip list --disable-pip-version-check --format=freeze | grep greeter
