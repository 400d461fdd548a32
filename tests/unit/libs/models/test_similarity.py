import numpy as np
import pytest

from libs.models.calibration import SIMILARITIES, similarity

POINTS = (0.70, 0.80, 0.96)


@pytest.mark.parametrize("cosine", [-1.0, 0.0, 0.70, 0.71, 0.7999, 0.80, 0.81, 0.95, 0.96, 1.0])
def test_similarity_is_linear_between_the_points_and_flat_outside(cosine: float) -> None:
    expected = float(np.interp(cosine, POINTS, SIMILARITIES))
    assert similarity(cosine, POINTS) == pytest.approx(expected, abs=1e-12)
