"""No module imports another in a circle, not even for its types."""

from graphlib import TopologicalSorter

import grimp


def test_no_modules_import_each_other_in_a_circle():
    graph = grimp.build_graph("frazil", exclude_type_checking_imports=False, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 400
    # Raises CycleError, which names the modules.
    TopologicalSorter(imports).prepare()
