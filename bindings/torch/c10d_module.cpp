#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "c10d_backend.h"

namespace py = pybind11;

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
	module.doc() = "Espalier as a backend of torch.distributed";
	/* The base class is torch's own. */
	py::module_::import("torch.distributed");
	py::class_<espalier::Backend, c10::intrusive_ptr<espalier::Backend>, espalier::Base>(module, "Backend")
		.def("share", &espalier::Backend::share, py::arg("tensor"), py::call_guard<py::gil_scoped_release>());
	module.def(
		"create",
		[](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout) {
			return espalier::Backend::create(store, rank, size, timeout);
		},
		py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::call_guard<py::gil_scoped_release>());
	/* The job is one of the library whose esp_alloc() is here. */
	module.def(
		"share",
		[](const at::Tensor &tensor, uintptr_t context) { return espalier::share(tensor, reinterpret_cast<esp_context *>(context)); },
		py::arg("tensor"), py::arg("context"), py::call_guard<py::gil_scoped_release>());
	module.attr("library") = reinterpret_cast<uintptr_t>(&esp_alloc);
	module.def("close_all", &espalier::Backend::close_all, py::call_guard<py::gil_scoped_release>());
	/* Before Python goes, not within: see close_all(). */
	py::module_::import("atexit").attr("register")(module.attr("close_all"));
	module.attr("torch_version") = TORCH_VERSION;
}
