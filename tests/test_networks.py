import pytest
import torch
from torch import nn

from ddclust.networks import MLP, ConvNet, Network


@pytest.mark.parametrize("side", [8, 9, 13, 15, 16, 17, 28, 32, 64])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_conv_takes_any_image_from_8x8_up(side, channels):
    hidden, logits = ConvNet((channels, side, side + 3), 7)(torch.rand(4, channels, side, side + 3))
    assert hidden.shape == (4, 100)
    assert logits.shape == (4, 7)


def test_conv_is_the_paper_s():
    network = ConvNet((1, 28, 28), 10)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert [(c.out_channels, c.kernel_size, c.padding) for c in convolutions] == [
        (32, (5, 5), (0, 0)),
        (64, (5, 5), (0, 0)),
    ]
    assert [m.in_features for m in network.modules() if isinstance(m, nn.Linear)] == [64 * 4 * 4, 100]
    assert sum(isinstance(m, nn.ReLU) for m in network.modules()) == 3


def test_mlp_is_the_paper_s():
    layers = [m for m in MLP((2000,), 4).modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in layers] == [
        (2000, 200),
        (200, 200),
        (200, 500),
        (500, 4),
    ]


@pytest.mark.parametrize("shape", [(1, 7, 28), (3, 28, 4)])
def test_too_small_an_image_is_said(shape):
    with pytest.raises(ValueError, match=f"at least 8x8 pixels, got {shape[1]}x{shape[2]}"):
        ConvNet(shape, 10)


@pytest.mark.parametrize("network", [ConvNet, MLP])
def test_soft_start_is_a_tenth_of_the_paper_s(network):
    outputs = []
    for init in ("he", "soft"):
        torch.manual_seed(0)
        outputs.append(network((1, 28, 28), 10, init=init).head.output.weight)
    torch.testing.assert_close(outputs[1], outputs[0] * 0.1)
    n_in = outputs[0].shape[1]
    assert outputs[0].std().item() == pytest.approx((2 / n_in) ** 0.5, rel=0.1)


@pytest.mark.parametrize("network", [ConvNet, MLP])
def test_soft_start_leaves_assignments_undecided(network):
    torch.manual_seed(0)
    x = torch.randn(100, 1, 28, 28)
    _, soft = network((1, 28, 28), 10, init="soft")(x)
    _, he = network((1, 28, 28), 10, init="he")(x)
    assert soft.softmax(1).max(1).values.mean() < 0.2
    assert he.softmax(1).max(1).values.mean() > 0.35


@pytest.mark.parametrize(("shape", "init"), [((1, 28, 28), "he"), ((20,), "soft")])
def test_the_start_of_the_output_layer_goes_by_the_kind_of_network(shape, init):
    networks = []
    for chosen in ("auto", init):
        torch.manual_seed(0)
        networks.append(Network(init=chosen)(shape, 10))
    assert torch.equal(*(network.head.output.weight for network in networks))


@pytest.mark.parametrize(("network", "shape"), [(ConvNet, (1, 28, 28)), (MLP, (20,))])
def test_norm_first_puts_the_relu_last(network, shape):
    x = torch.randn(50, *shape)
    after, _ = network(shape, 3)(x)
    first, _ = network(shape, 3, norm_first=True)(x)
    assert (after < 0).any()
    torch.testing.assert_close(after.mean(dim=0), torch.zeros(after.shape[1]), atol=1e-4, rtol=0)
    assert (first >= 0).all()
    assert 0.3 < (first > 0).float().mean() < 0.7


def test_unknown_init_is_named():
    with pytest.raises(ValueError, match="'xavier'"):
        MLP((2,), 2, init="xavier")
