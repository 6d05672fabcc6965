"""Queries that are the stream in some layers alone."""

from __future__ import annotations

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ModelSpec
from tests.studies.query_free.eliminate_query.models_to_eliminate import NORM_FREE, off_its_start, tokens


def test_is_a_projection_by_the_identity():
    spec = NORM_FREE | {"projections": {"name": "partial_identity_query", "layers": "0, 2", "bias": True}}
    own = off_its_start(create(ModelSpec.from_dict(spec), init_seed=3))
    other = Decoder(ModelSpec.from_dict(NORM_FREE | {"projections": {"name": "grouped_query", "bias": True}}))
    identity = {"weight": torch.eye(32), "bias": torch.zeros(32)}
    weights = own.state_dict()
    for name in other.state_dict():
        if ".query." in name and not name.startswith("blocks.1."):
            assert name not in weights
            weights[name] = identity[name.rsplit(".", 1)[-1]]
    other.load_state_dict(weights)
    torch.testing.assert_close(own(tokens(own)), other(tokens(own)), rtol=1e-5, atol=1e-6)
    assert [role.layer for role in own.parameter_roles.values() if role.role == "query"] == [1]


@pytest.mark.parametrize("layers", ["", "3", "-1", "0;1", "all"])
def test_what_names_no_layers(layers):
    spec = NORM_FREE | {"projections": {"name": "partial_identity_query", "layers": layers}}
    with pytest.raises(PlumblineError, match="name layers of 0 to 2"):
        Decoder(ModelSpec.from_dict(spec))
