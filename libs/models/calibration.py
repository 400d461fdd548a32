"""What an unknown embedding model's cosines mean, found out by asking it.

One model's unrelated texts have cosines of 0.1, another's of 0.8, so no fixed floor fits both. A
dozen questions and passages, in Chinese and English, of six subjects, are embedded once; how near
each question is to its own passage and to those of other subjects gives the three points between
which similarity is linear, as it is for the bundled model. Measured so, that one gets 0.71, 0.80
and 0.95; from 900 questions it got 0.70, 0.80 and 0.96.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from libs.kernel import PermanentError

Points = tuple[float, float, float]  # the cosines that count as each of:
SIMILARITIES: Final = (0.0, 0.45, 1.0)
_LEAST_GAP: Final = 0.01

# Each subject's question and passage in English and in Chinese: a translation is related, too.
_SUBJECTS: Final = (
    (
        ("What is the spending limit for business trips?", "出差报销的上限是多少？"),
        (
            "Travel expenses are reimbursed up to 500 yuan a day; anything above needs the "
            "approval of the head of department.",
            "差旅费用的报销上限是每天五百元，超出部分须经部门负责人批准。",
        ),
    ),
    (
        ("How long does delivery of a parcel take?", "包裹多久能送到？"),
        (
            "Parcels are delivered within three working days after the order was confirmed, and "
            "within five days abroad.",
            "订单确认后，包裹在三个工作日内送达，海外订单为五个工作日。",
        ),
    ),
    (
        ("Who invented the telephone?", "谁发明了造纸术？"),
        (
            "Alexander Graham Bell was granted a patent for the telephone in 1876 and is regarded "
            "as its inventor.",
            "东汉时期的蔡伦改进了造纸术，用树皮、麻头和破布制成纸张。",
        ),
    ),
    (
        ("At what temperature does the boiler's alarm go off?", "锅炉在什么温度下报警？"),
        (
            "The sensor raises an alarm as soon as the boiler is hotter than 95 degrees for more "
            "than ten seconds.",
            "锅炉温度超过九十五度并持续十秒以上时，传感器发出报警。",
        ),
    ),
    (
        ("How are tomatoes planted?", "番茄应该怎么种植？"),
        (
            "Set the young tomato plants half a metre apart in a sunny bed, and water them in the "
            "morning.",
            "番茄幼苗应种在向阳的苗床里，株距半米，早晨浇水。",
        ),
    ),
    (
        ("When may an employee be dismissed without notice?", "什么情况下可以立即解除劳动合同？"),
        (
            "The employment contract can be ended without notice when the employee has committed "
            "a serious breach of duty, such as theft.",
            "员工有盗窃等严重违反职责的行为时，单位可以立即解除劳动合同。",
        ),
    ),
)
QUESTIONS: Final = tuple(text for questions, _ in _SUBJECTS for text in questions)
PASSAGES: Final = tuple(text for _, passages in _SUBJECTS for text in passages)


def measured(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> Points:
    """The points of a model, from its unit vectors of QUESTIONS and PASSAGES.

    Raises: PermanentError (`embedding-model`) for one that cannot tell what belongs together.
    """
    cosines = questions @ passages.T
    subject = np.arange(len(QUESTIONS)) // 2
    own = cosines[np.arange(len(QUESTIONS)), np.arange(len(QUESTIONS))]
    foreign = cosines[subject[:, None] != subject[None, :]]
    low = float(np.percentile(foreign, 25))
    middle = float((np.median(foreign) + np.percentile(own, 25)) / 2)
    high = float(own.max())
    if np.percentile(own, 25) <= np.median(foreign):
        raise PermanentError("embedding-model", "it finds no question's own passage")
    return checked((low, middle, high))


def checked(points: Sequence[float]) -> Points:
    """Raises: PermanentError (`embedding-model`) unless they are three rising cosines."""
    low, middle, high = points if len(points) == 3 else (0.0, 0.0, 0.0)
    rising = low + _LEAST_GAP <= middle and middle + _LEAST_GAP <= high
    if not (rising and low >= -1.0 and high <= 1.0):
        said = ", ".join(f"{point:.3f}" for point in points)
        raise PermanentError(
            "embedding-model",
            f"{said} are not three rising cosines: set EMBED_COSINES to those that count as a "
            "similarity of 0, 0.45 and 1, such as 0.70,0.80,0.96",
        )
    return low, middle, high


def similarity(cosine: float, points: Points) -> float:
    above = bisect_right(points, cosine)  # in plain numbers: asked for each hit of a search
    if above in {0, len(points)}:
        return SIMILARITIES[0 if above == 0 else -1]
    low, high = points[above - 1], points[above]
    less, more = SIMILARITIES[above - 1], SIMILARITIES[above]
    return less + (more - less) * (cosine - low) / (high - low)
