#include "c10d_backend.h"

namespace espalier {

namespace {

/* A gathered list: a tensor of each rank, of which each may have another number of rows. */
Tensors gather_rows(Backend &backend, const at::Tensor &own, const std::vector<int64_t> &rows, std::chrono::milliseconds timeout)
{
	std::vector<Tensors> outputs(1);
	Tensors inputs = {own};
	c10d::AllgatherOptions options;

	for (int64_t count : rows) {
		std::vector<int64_t> shape = own.sizes().vec();

		shape[0] = count;
		outputs[0].push_back(at::empty(shape, own.options()));
	}
	options.timeout = timeout;
	backend.allgather(outputs, inputs, options)->wait();
	return outputs[0];
}

} // namespace

/*
 * The sum of sparse tensors: all ranks gather indices and values, and each adds them in the order of ranks. It is complete when it
 * returns, as each gathering needs the sizes that the one before has found.
 */
Backend::Works Backend::allreduce_sparse(at::Tensor &tensor, const c10d::AllreduceOptions &opts)
{
	bool is_average = opts.reduceOp.op_ == c10d::ReduceOp::AVG;

	TORCH_CHECK(tensor.layout() == at::kSparse, "espalier: of sparse tensors, those in the layout torch.sparse_coo can be combined");
	TORCH_CHECK(is_average || opts.reduceOp.op_ == c10d::ReduceOp::SUM, "espalier: sparse tensors can be added and averaged");
	TORCH_CHECK(!is_average || tensor.is_floating_point(), "espalier: the average of whole numbers is not what you want; sum them, and divide");
	TORCH_CHECK(tensor.device().is_cpu(), "espalier: sparse tensors are combined on the host; move the tensor there");
	at::Tensor own = tensor.coalesce();
	int64_t dimensions = own.sparse_dim(), count = own._nnz();
	/* Rows: one for each element of the sparse tensor. */
	at::Tensor indices = own.indices().t().contiguous(), values = own.values().contiguous();
	at::Tensor mine = at::empty({1, 2}, at::kLong);

	mine[0][0] = count;
	mine[0][1] = dimensions;
	std::vector<int64_t> ones(static_cast<size_t>(getSize()), 1), rows;
	for (const at::Tensor &one : gather_rows(*this, mine, ones, opts.timeout)) {
		TORCH_CHECK(one[0][1].item<int64_t>() == dimensions, "espalier: sparse tensors of ", dimensions, " and of ",
		            one[0][1].item<int64_t>(), " sparse dimensions in one call");
		rows.push_back(one[0][0].item<int64_t>());
	}
	Tensors all_indices = gather_rows(*this, indices, rows, opts.timeout), all_values = gather_rows(*this, values, rows, opts.timeout);
	at::Tensor sum = at::sparse_coo_tensor(at::cat(all_indices).t(), at::cat(all_values), own.sizes()).coalesce();
	if (is_average)
		sum.div_(getSize());
	tensor.copy_(sum);

	auto call = begin(c10d::OpType::ALLREDUCE);
	call->outputs_ = {tensor};
	call->unfinished_ = 1;
	return launch(std::move(call));
}

} // namespace espalier
