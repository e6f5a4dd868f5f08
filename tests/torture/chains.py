"""The shipped chain `implement-and-review` under kills: each log has a few, which run at once."""

from collections import Counter
from importlib.resources import files

from tests.torture.ground import ACTS, Ground

VERDICT = '{"verdict": "clean", "issues": []}'


class ChainGround(Ground):
    """A log with chains, whose agents have scripts drawn by chance."""

    longest_seconds = 1.0

    def __init__(self, folder, chance, tally, turns):
        super().__init__(folder, chance, tally, turns)
        (folder / "script.toml").rename(folder / "implement-script.toml")
        review = [self._turn(number) for number in range(1, 4)]
        end = f"[[reply]]\ntext = '{VERDICT}'\n"
        (folder / "review-script.toml").write_text("".join([*review, end]))
        tools = [f"{ACTS}:{name}" for name in ("look", "put", "pay")]
        self._write_agent("implement.toml", "implement", "implement-script.toml", tools)
        self._write_agent("review.toml", "review", "review-script.toml", tools)
        with (folder / "review.toml").open("a") as file:
            file.write('[output]\ntype = "object"\nrequired = ["verdict"]\n')
        chain = (files("cueline") / "agents/chains/implement-and-review.toml").read_text()
        (folder / "agent.toml").write_text(f'{chain}\n[policy]\nin_doubt = "tell"\n')

    def begin_words(self, session):
        (self.folder / session).mkdir(exist_ok=True)
        words = ("--workspace", session, "--id", session)
        return ("run", "agent.toml", "-p", "goal=Go", *words)

    def send(self, session):
        """Send nothing: a plan takes no messages."""

    def exported(self, session):
        """Also look at what the agents of the chain did."""
        streams = self.streams()
        began = Counter(line[1] for line in self.journal(session) if line[0] == "start")
        for child in (f"{session}.1.0", f"{session}.1.1"):
            stream = f"session-default/{child}"
            ends = [type_ for type_, _ in streams[stream]].count("SessionCompleted")
            starts = [type_ for type_, _ in streams[f"inbox-default/{child}"]].count("StartAsked")
            if (ends, starts) != (1, 1):
                self.tally.fault("untold", f"{child} was asked for {starts} times, ended {ends}")
            for call in super().exported(child)["tool_calls"]:
                count = began[f"{stream}/{call['effect']}"]
                if call["tool"] == "pay" and count > 1:
                    self.tally.fault("repeated", f"{child}: {call['effect']} began {count} times")
        # No model is told of the calls of a plan: those of its agents are looked at above.
        return super().exported(session) | {"tool_calls": []}
