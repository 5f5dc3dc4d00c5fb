"""Small variants of the models whose path depends on the input: a6 to a10, b1 to b9 and c7, calibrated as those of full size
are (`dynamic.py`), so that every exit and skip is some input's."""

from .caption import resnet101, resnext
from .dynamic import DynamicModel, berxit, captions, dgnet, exiting, gated, pictures
from .exits import RaNet, sdn_mobilenet, sdn_resnet56, sdn_vgg16bn, sdn_wrn32_4
from .export import normal, save_examples
from .gated import Basic, BlockDrop, ConvGate, DgNet, GatedNet, PooledGate, RecurrentNet
from .sequence import Berxit, text

SMALL = {"widths": (8, 16), "depths": (2, 2), "classes": 10}
CIFAR = {"block": Basic, "widths": (8, 16, 32), "depths": (2, 2, 2), "classes": 10, "small": True}
SIDES = (64, 80, 96, 112, 128)
FOURTHS = (64, 128, 192)  # of nets that pool to 4 by 4 after four strides


def with_examples(write, examples):
    """A writer whose examples have other sizes than its cases, which are of one."""

    def both(path):
        write(path)
        save_examples(path, examples)

    return both


def small(id, name, write, draw, examples):
    return DynamicModel(id, name, with_examples(write, examples), draw)


def of_images(id, name, write, sides=SIDES, sizes=((64, 64), (96, 80))):
    examples = [{"image": normal(1, 3, h, w, seed=i)} for i, (h, w) in enumerate(sizes)]
    return small(id, name, write, pictures(sides), examples)


def exits(id, name, make, sides, sizes):
    return of_images(id, name, exiting(make, sides, 64, 64), sides, sizes)


def gates(id, name, make):
    return of_images(id, name, gated(make, SIDES, 64))


def words(id, name, make):
    return of_images(id, name, captions(make, (64, 96, 128), 64), (64, 96, 128), ((64, 64), (96, 128)))


def short_text(random):
    return text(1, int(random.integers(3, 40)), seed=int(random.integers(1 << 30)))


MODELS = [
    gates("a6", "skipnet", lambda: GatedNet(ConvGate, **SMALL)),
    of_images("a7", "dgnet", dgnet(lambda: DgNet((8, 16), (2, 1), 10), SIDES)),
    gates("a8", "convnet_aig", lambda: GatedNet(PooledGate, **SMALL)),
    exits("a9", "ranet", lambda: RaNet((4, 8, 8), 1, 10), SIDES, ((64, 64), (96, 80))),
    gates("a10", "blockdrop", lambda: BlockDrop(**SMALL, shrink=32)),
    exits("b1", "sdn_mobilenet", lambda: sdn_mobilenet(2, 10), FOURTHS, ((64, 64), (128, 192))),
    exits("b2", "sdn_vgg16bn", lambda: sdn_vgg16bn(2, 64, 10), (64,), ((64, 64),)),
    exits("b3", "sdn_resnet56", lambda: sdn_resnet56((4, 8, 16), (3, 3, 3), 10, (0, 2, 4, 6)), FOURTHS, ((64, 64), (96, 128))),
    exits("b4", "sdn_wrn32_4", lambda: sdn_wrn32_4((4, 8, 16), (2, 2, 2), 10, (1, 3)), FOURTHS, ((64, 64), (96, 128))),
    gates("b5", "skipnet38_rnn", lambda: RecurrentNet((4, 8, 16), (2, 2, 2))),
    gates("b6", "skipnet38_ff", lambda: GatedNet(ConvGate, **CIFAR)),
    words("b7", "caption_resnext", lambda: resnext(8, (8, 16), (1, 1), 2, 2, width=8, words=20)),
    words("b8", "caption_resnet101", lambda: resnet101(8, (8, 16, 32), (1, 1, 1), 2, 20, width=8)),
    gates("b9", "blockdrop110", lambda: BlockDrop(**CIFAR, shrink=32)),
    small("c7", "berxit", berxit(lambda: Berxit(100, 16, 2, 3), short_text), short_text, [text(1, 8), text(1, 21)]),
]
