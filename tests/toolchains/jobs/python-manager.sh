# A manager's processes find each other by the name that a bound socket says it has.
# needs: python3
cat > managed.py <<'P'
import multiprocessing as mp

if __name__ == '__main__':
    with mp.Manager() as manager: held = manager.dict(a=1); print('manager', dict(held))
P
python3 managed.py
