"""The contract holds for every model here, and each way to break it is named."""

import pytest
import torch

from companion.models import MODELS, ModelConfig, Quantized, SequenceModel, build, contract
from companion.models.stack import take_rows

CONFIG = ModelConfig(vocab=5, classes=3, width=8, heads=2, max_len=32, state_size=4)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_models_of_the_book_keep_it(name):
    model = build(name, CONFIG, rng=torch.Generator().manual_seed(0))
    before = {key: x.clone() for key, x in model.state_dict().items()}
    found = contract(model, symbols=5)
    assert max(found.cuts, found.steps, found.rows) < 1e-9
    assert found.most == (None if name == "transformer" else found.bits[0])
    assert found.bits[5] == model.state_bits(model(torch.zeros(1, 5, dtype=torch.int64))[1])
    assert all(torch.equal(x, before[key]) for key, x in model.state_dict().items())
    assert model.dtype == torch.float32 and model.training


class Sums(SequenceModel):
    """Running sums of embeddings: right as it stands; subclasses break one thing each."""

    def __init__(self, config=CONFIG):
        super().__init__(config)
        self.embed = torch.nn.Embedding(config.vocab, 4)
        self.head = torch.nn.Linear(4, config.classes)

    def state_shapes(self, t):
        return ((4,),)

    def advance(self, tokens, state, read):
        h = state.tensors[0][:, None] + self.embed(tokens).cumsum(1)
        return self.head(take_rows(h, read)), (h[:, -1],)


class Amnesiac(Sums):
    def advance(self, tokens, state, read):
        h = self.embed(tokens).cumsum(1)
        return self.head(take_rows(h, read)), (h[:, -1],)


class Stale(Sums):
    """The answers are right, but the state is that of the symbol before."""

    def advance(self, tokens, state, read):
        logits, (h,) = super().advance(tokens, state, read)
        return logits, (h - self.embed(tokens[:, -1]),)


class Prophet(Sums):
    def advance(self, tokens, state, read):
        h = state.tensors[0][:, None] + self.embed(tokens).sum(1, keepdim=True)
        return self.head(take_rows(h.expand(-1, tokens.shape[1], -1), read)), (h[:, -1],)


class Gossip(Sums):
    def advance(self, tokens, state, read):
        h = state.tensors[0][:, None] + self.embed(tokens).cumsum(1)
        return self.head(take_rows(h - h.mean(0), read)), (h[:, -1],)


class Hoarder(Sums):
    calls = 0

    def advance(self, tokens, state, read):
        self.calls += 1
        logits, after = super().advance(tokens, state, read)
        return logits * self.calls, after


class Cache(Sums):
    """Keeps in an attribute what its state should hold, which is then empty."""

    kept = torch.zeros(1, 4)

    def state_shapes(self, t):
        return ()

    def advance(self, tokens, state, read):
        before = self.kept if state.t else torch.zeros(1, 4)
        h = before[:, None] + self.embed(tokens).cumsum(1)
        self.kept = h[:, -1]
        return self.head(take_rows(h, read)), ()


class Scribbler(Sums):
    """Writes over the state that it was given."""

    def advance(self, tokens, state, read):
        logits, after = super().advance(tokens, state, read)
        state.tensors[0].zero_()
        return logits, after


class Double(Sums):
    """Counts half of the bits that it keeps."""

    def advance(self, tokens, state, read):
        logits, (h,) = super().advance(tokens, state, read)
        return logits, (h.double(),)


class QuietProphet(Prophet):
    """As one whose last layer starts at zero."""

    def __init__(self, config=CONFIG):
        super().__init__(config)
        torch.nn.init.zeros_(self.head.weight)


class Deaf(Sums):
    """Returns all rows whatever is asked."""

    def advance(self, tokens, state, read):
        return super().advance(tokens, state, None)


class Liar(Sums):
    def state_shapes(self, t):
        return ((2,),)

    def advance(self, tokens, state, read):
        h = state.tensors[0].repeat(1, 2)[:, None] + self.embed(tokens).cumsum(1)
        return self.head(take_rows(h, read)), (h[:, -1],)


class Rounded(Sums):
    """Rounds after every chunk: a cut changes the answers a little."""

    def advance(self, tokens, state, read):
        logits, (h,) = super().advance(tokens, state, read)
        return logits, ((h * 8).round() / 8,)


BROKEN = {
    Amnesiac: "a cut at 1 that differ by .*: the state lacks something",
    Stale: "a cut at 1 that differ by .*: the state lacks something",
    Prophet: "the first 1 answers that differ by .*: they see later symbols",
    QuietProphet: "the first 1 answers that differ by .*: they see later symbols",
    Gossip: "answers to sequence 0 alone that differ by .*: it sees the others of its batch",
    Hoarder: "answers of a second call that differ by .*: the first left something behind",
    Cache: "a cut at 1 that differ by .*: the state lacks something",
    Scribbler: "tensor 0 of a state once read on from that differ by .*: it is written over",
    Double: "got tensor 0 of the state in torch.float64, expected torch.float32",
    Deaf: r"rows read of a first chunk of shape \(3, 6, 3\), expected \(3, 4, 3\)",
    Liar: r"shapes \[\(3, 4\)\] after 1 symbols, expected \[\(3, 2\)\] after 1",
    Rounded: "a cut at 1 that differ by .*: the state lacks something",
}


def make(kind):
    torch.manual_seed(0)
    return kind(CONFIG)


def test_a_running_sum_keeps_it():
    assert contract(make(Sums)).bits == (128,) * 25


@pytest.mark.parametrize("kind", BROKEN)
def test_each_way_to_break_it_is_named(kind):
    with pytest.raises(ValueError, match=BROKEN[kind]):
        contract(make(kind), symbols=6)


def test_numbers_and_sizes_that_occur_are_taken():
    class Masked(Sums):
        """An answer that is never given, and a state of no numbers beside the other."""

        def state_shapes(self, t):
            return (4,), (0, 2)

        def advance(self, tokens, state, read):
            logits, (h,) = super().advance(tokens, state, read)
            return logits.index_fill(-1, torch.tensor(0), -torch.inf), (h, state.tensors[1])

    assert contract(make(Masked), symbols=4).most == 128
    small = Quantized(make(Sums), bits=2)
    assert contract(small, symbols=4).bits == (8,) * 5


def test_a_state_that_comes_and_goes_counts_with_its_largest():
    class Chunked(Sums):
        """Keeps the symbols of an unfinished chunk of four."""

        def state_shapes(self, t):
            return (4,), (t % 4, 4)

        def advance(self, tokens, state, read):
            h, rows = state.tensors
            x = torch.cat([rows, self.embed(tokens)], 1)
            sums = h[:, None] + x.cumsum(1)
            done = x.shape[1] // 4 * 4
            logits = self.head(take_rows(sums[:, rows.shape[1] :], read))
            return logits, (sums[:, done - 1] if done else h, x[:, done:])

    assert contract(make(Chunked), symbols=9).most == 32 * (4 + 3 * 4)


def test_too_short_a_sequence_shows_nothing():
    with pytest.raises(ValueError, match="symbols=1 and batch=3, expected at least 2 of each"):
        contract(make(Sums), symbols=1)
