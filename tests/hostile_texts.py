"""Texts that others may write anywhere: names, labels, captions, messages, files. None of them runs or loads anything.

What runs would set `hostile`, what is loaded would have that word in its address.
"""

from __future__ import annotations

MARKUP = (
    "</title></textarea></pre></script><script>hostile=1</script>",
    "<img src=/hostile.png onerror=hostile=1>",
    '"\' onmouseover=\'hostile=1\' onfocus="hostile=1" autofocus hostile="',
    "<!--<script>hostile=1//",
    "--></style><style>@import'http://hostile.invalid/x'</style>",
    "}*{background:url(http://hostile.invalid/x)}",
    "[x](javascript:hostile=1) ![x](http://hostile.invalid/x.png) <javascript:hostile=1>",
    "]]></text></svg><svg onload=hostile=1><a xlink:href='javascript:hostile=1'><foreignObject/></a>",
    "&lt;script>hostile=1&lt;/script> &#60;script>",
    "<base href=//hostile.invalid><meta http-equiv=refresh content='0;url=//hostile.invalid'>",
    "<iframe srcdoc='<script>hostile=1</script>'></iframe><object data=//hostile.invalid>",
    "{{ 7 * 7 }} {% hostile %} $\\hostile$",
    "\u2028\u2029\u202e\x1b[2J\ufffe",
)
#: All of them, for what has one text.
HOSTILE = " ".join(MARKUP)

#: Texts that a spreadsheet would carry out, and such as only look like them.
FORMULAS = ("=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+A1", "-2+3+cmd|' /C calc'!A0", "-HYPERLINK(1)", "\t=1", "＝1")
FORMULAS += ("\r=1", "\n=1", "+cmd", "-(1)", "－A1", "＠x", "+1|x", "\ufeff=1")
NO_FORMULAS = ("-0.3", "+1.5%", "-1e-5", "-.5", "-inf", "-0.3 to 0.1", "-0.3 ± 0.1", "-", "--", "a=b", "", "'a", "1-2")
