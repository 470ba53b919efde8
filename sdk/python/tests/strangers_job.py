"""The job of a stranger's project: a task for each kind of code that it uses.

Read next: `strangers_project.py`.
"""

JOB = '''import asyncio
import contextlib
import importlib
import operator
import sys
from importlib import import_module as load
from functools import partial, reduce

import shop
import shop.late_child
import spaces.part
import editable
import zipped
from shop import plugins, prices
from shop.models import Dog, Pair
from shop.optional import optional as optional_work
from shop.tools import deep, dig

import ciel

take = getattr
run_text = eval
counting = deep.counter()
by_seven = deep.adder(233)
picked = deep.picker(operator.itemgetter(2))
via_default = lambda x, get=operator.attrgetter("real"): get(x)
WORDS = "x + 239"
OPTIONS = {"deep": [{"rate": 241}]}
EXPENSIVE = {}


@ciel.task
def re_exported(x):
    return shop.net_price(x) + shop.with_tax(x)


@ciel.task
def lazy_attribute(x):
    return shop.lazy_rate + x


@ciel.task
def decorated(x):
    return prices.rounded(x)


@ciel.task
def cached(x):
    return prices.squared(x)


@ciel.task
def dispatched(x):
    return prices.shown(x), prices.shown(str(x)), prices.shown(1.5)


@ciel.task
def managed(x):
    with prices.offset() as by, contextlib.suppress(KeyError):
        return x + by


@ciel.task
def item(x):
    return prices.first([x, x + 251, x + 257])


@ciel.task
def looked_up(x):
    return prices.discounts["few"](x)


@ciel.task
def attribute_of_function(x):
    return prices.tuned(x)


@ciel.task
def property_and_partial(x):
    return prices.Basket().total + prices.Basket().by_two(x)


@ciel.task
def loaded_at_import(x):
    return prices.rates.LOADED["base"] + x


@ciel.task
def own_type_in_class(x):
    return shop.Point.ORIGIN.x + x


@ciel.task
def data_class(x):
    order = shop.Order()
    return order.lines, order.level


@ciel.task
def enums(x):
    return shop.Level.LOW.doubled(), (shop.Flags.A | shop.Flags.B).value


@ciel.task
def slots_and_meta(x):
    return shop.Slotted().x, len(shop.Registered), shop.Registered.known


@ciel.task
def descriptor(x):
    checked = shop.Checked()
    checked.x = x
    return checked.x


@ciel.task
def tuples(x):
    return shop.Row(x), Pair(x)


@ciel.task
def abstract(x):
    return Dog().loud()


@ciel.task
def subclasses(x):
    return sorted(one().sound() for one in shop.Animal.__subclasses__())


@ciel.task
def relative(x):
    return dig(x)


@ciel.task
def coroutine(x):
    async def both():
        return [n async for n in deep.many(x)], await deep.later(x)

    return asyncio.run(both())


@ciel.task
def generated(x):
    return [*deep.numbers(x)]


@ciel.task
def closure(x):
    return by_seven(x)


@ciel.task
def closure_of_operator(x):
    return picked([x, x + 263, x + 269, x + 271])


@ciel.task
def default_of_operator(x):
    return via_default(x + 277j)


@ciel.task
def registered(x):
    return plugins.STEPS["red"](x), sorted(plugins.STEPS)


@ciel.task
def registered_operator(x):
    return plugins.CALLABLES["pick"]([x, x + 281, x + 283, x + 293])


@ciel.task
def imported_by_constant(x):
    return importlib.import_module("shop.late.green").run(x)


@ciel.task
def imported_by_other_name(x):
    return load("shop.late.green").run(x)


@ciel.task
def imported_inside(x):
    from shop.late import green

    return green.run(x)


@ciel.task
def optional(x):
    return optional_work(x)


@ciel.task
def namespace_package(x):
    return spaces.part.part(x)


@ciel.task
def beside(x):
    return editable.beside(x)


@ciel.task
def from_zip(x):
    return zipped.inside(x)


@ciel.task
def computed_in_zip(x):
    return getattr(zipped, "in" + "side"[: x + 4])(x)


@ciel.task
def evaluated(x):
    return eval(WORDS)


@ciel.task
def evaluated_by_other_name(x):
    return run_text("hidden(x)")


def hidden(x):
    return x + 307


@ciel.task
def attribute_by_other_name(x):
    return take(prices, "n" + "et")(x)


@ciel.task
def executed(x):
    found = {"x": x}
    exec("y = x + 311", found)
    return found["y"]


@ciel.task
def globals_of_frame(x):
    return sys._getframe().f_globals["hid" + "den"](x)


@ciel.task
def globals_of_function(x):
    return closure.function.__globals__["hid" + "den"](x)


@ciel.task
def variables_of_module(x):
    return vars(prices)["net"](x)


@ciel.task
def got_by_operator(x):
    return operator.attrgetter("prices.net")(shop)(x)


@ciel.task
def formatted(x):
    return f"{prices.net(x):>{prices.Basket.size}} of {OPTIONS['deep'][0]['rate']}"


@ciel.task
def reduced(x):
    return reduce(lambda a, b: a * b + 313, range(x + 2), 317)


@ciel.task
def remembered(x):
    if x not in EXPENSIVE:
        EXPENSIVE[x] = partial(prices.net, x)() + 331
    return EXPENSIVE[x]


@ciel.task
def defaults(x, *, by=337, table={"a": 347}):
    return x + by + table["a"]


@ciel.task
def class_inside(x):
    class Inner(prices.Basket):
        size = 349

    return Inner().total


@ciel.task
def walrus_and_match(x):
    match x:
        case int(n) if (m := n + 353) > 0:
            return m
    return 359


def main():
    tasks = [value for value in globals().values() if isinstance(value, ciel.Task)]
    return [repr(task.spawn(3).result()) for task in tasks]
'''
