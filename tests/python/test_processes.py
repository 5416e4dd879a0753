# SPDX-License-Identifier: Apache-2.0
"""What happens at the ends of interpreters: exit, fork, sub-interpreters. Each in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

FOLDER = os.path.dirname(__file__)


def run(script, may_lack=None):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([FOLDER, *sys.path]))
    done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(script)], env=environment, capture_output=True,
                          text=True, timeout=120, check=False)
    if may_lack is not None and done.stderr == may_lack + "\n":
        pytest.skip(f"this build has {may_lack}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_exit_with_everything_alive():
    out = run("""
        import tiny_models as models, numpy, rewire
        @rewire.kernel("mine.none")
        def unused(x): pass
        program = rewire.load(models.add((4,)), threads=2, kernels=[unused])
        x = numpy.ones(4, numpy.float32)
        vm = program.vm()
        vm.set_input("a", x)
        vm.set_input("b", x)
        vm.invoke()
        result, output, parameters = program(x, x), vm.output("sum"), rewire.ParameterSet.from_arrays({"x": x})
        tensor = rewire.tensor(x)
        program.itself = program
        print(output[0])
    """)
    assert out == "2.0\n"


def test_exit_while_a_thread_runs():
    run("""
        import threading, time, tiny_models as models, numpy, rewire
        vm = rewire.load(models.slow()).vm()
        vm.set_input("x", numpy.zeros((512, 512), numpy.float32))
        threading.Thread(target=vm.invoke, daemon=True).start()
        time.sleep(0.2)
    """)


def test_a_forked_process_runs_what_was_loaded():
    out = run("""
        import os, tiny_models as models, numpy, rewire
        program = rewire.load(models.add((4,)))
        x = numpy.ones(4, numpy.float32)
        program(x, x)
        child = os.fork()
        if child == 0:
            os._exit(0 if program(x, x)["sum"][0] == 2 else 1)
        print(os.waitpid(child, 0)[1])
    """)
    assert out == "0\n"


def test_a_second_interpreter_is_refused():
    run("""
        import rewire
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            raise SystemExit
        one = interpreters.create()
        try:
            interpreters.run_string(one, "import warnings; warnings.simplefilter('ignore'); import rewire")
            raise SystemExit("a second interpreter has imported it")
        except interpreters.RunFailedError as error:
            assert "ImportError" in str(error), error
    """)


def test_ctrl_c_ends_a_run_of_the_main_thread():
    out = run("""
        import os, signal, threading, time, tiny_models as models, numpy, rewire
        program, vm = rewire.load(models.slow()), rewire.load(models.slow()).vm()
        x = numpy.zeros((512, 512), numpy.float32)
        vm.set_input("x", x)

        def interrupted(call):
            # The timer's thread gets the signal, as any thread may.
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                call()
            except BaseException as error:
                return type(error).__name__, time.monotonic() - begin < 5
            return "ran to its end"

        before = signal.getsignal(signal.SIGINT)
        for call in (lambda: program(x), lambda: program.run({"x": x}), vm.invoke, lambda: program.profile(x)):
            assert interrupted(call) == ("KeyboardInterrupt", True), call
        assert signal.getsignal(signal.SIGINT) is before

        # A handler that raises nothing: the run has ended all the same, and says so.
        seen = []
        signal.signal(signal.SIGINT, lambda *args: seen.append(args[0]))
        assert interrupted(vm.invoke) == ("CancelledError", True)
        assert seen == [signal.SIGINT]

        # Who ignores the signal is not interrupted, and a run on another thread is not meant.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            program.run({"x": x}, timeout=0.5)
        except rewire.DeadlineExceededError:
            print("deadline")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        caught = []

        def elsewhere():
            try:
                program.run({"x": x}, timeout=1.0)
            except rewire.Error as error:
                caught.append(type(error).__name__)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            thread.join()
        print(*caught)
    """)
    assert out == "deadline\nDeadlineExceededError\n"


def test_a_forked_process_lets_go_of_programs_with_threads_and_loads_them_again():
    out = run("""
        import os, signal, tiny_models as models, numpy, rewire
        model, w = models.linear(512)
        program = rewire.load(model, threads=3)
        x = numpy.ones((64, 8), numpy.float32)
        expected = program(x)["y"]

        def child(what):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # ends a child that waits
                os._exit(0 if what() else 1)
            print(os.waitpid(child, 0)[1])

        def runs():
            return (program(x)["y"] == expected).all()

        def drops():
            global program
            del program
            return True

        def loads_again():
            global program
            program = rewire.load(model, threads=3)
            return runs()

        for what in (runs, drops, loads_again, runs):
            child(what)
        assert runs()
    """)
    assert out == "0\n0\n0\n0\n"


def test_a_forked_process_runs_kernels_whose_threads_are_of_openmp():
    out = run("""
        import os, signal, onnx, tiny_models as models, numpy, rewire
        w = numpy.random.default_rng(1).random((64, 16, 3, 3), numpy.float32)
        node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], group=4, pads=[1, 1, 1, 1])
        images = onnx.TensorProto.FLOAT, (1, 64, 56, 56)
        model = models.model([node], [("x", *images)], [("y", *images)], [("w", w)])
        program = rewire.load(model, threads=3)
        if "rewire.onednn.conv" not in program.executable.kernels:
            raise SystemExit("no oneDNN")
        x = numpy.random.default_rng(2).random(images[1], numpy.float32)
        expected = program(x)["y"]
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that waits
            again = rewire.load(model, threads=3)
            os._exit(0 if all(numpy.allclose(each(x)["y"], expected) for each in (program, again, again)) else 1)
        print(os.waitpid(child, 0)[1], numpy.allclose(program(x)["y"], expected))
    """, may_lack="no oneDNN")
    assert out == "0 True\n"
