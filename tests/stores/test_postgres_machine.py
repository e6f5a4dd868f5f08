from hypothesis.stateful import rule

from cueline.stores.backend import backend_of
from cueline.testing.event_store_example import SetClock
from tests.drawn import drawn
from tests.stores.test_state_machine import StoreMachine, run_machine


def test_the_store_is_a_list_with_rules(server):
    class PostgresMachine(StoreMachine):
        def open(self):
            return backend_of(server.empty_log()).open(SetClock())

        @rule()
        def open_again(self):
            self.run(self.store.close())
            self.store = backend_of(self.store.address.name).open(SetClock())

        @rule()
        def lose_all_connections(self):
            server.terminate_all()

    run_machine(PostgresMachine, examples=drawn(15))
