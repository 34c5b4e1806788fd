#include "c10d_backend.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

namespace espalier {

namespace {

/* ---- types and operations ---- */

esp_type type_of(at::ScalarType type)
{
	switch (type) {
	case at::kFloat: return ESP_F32;
	case at::kDouble: return ESP_F64;
	case at::kHalf: return ESP_F16;
	case at::kBFloat16: return ESP_BF16;
	case at::kChar: return ESP_I8;
	case at::kByte: return ESP_U8;
	case at::kBool: return ESP_U8;
	case at::kShort: return ESP_I16;
	case at::kInt: return ESP_I32;
	case at::kLong: return ESP_I64;
	default: TORCH_CHECK(false, "espalier: tensors of ", type, " cannot be combined");
	}
}

esp_op op_of(const c10d::ReduceOp &op, at::ScalarType type, double *factor)
{
	bool is_bool = type == at::kBool;

	switch (op.op_) {
	case c10d::ReduceOp::SUM: return is_bool ? ESP_LOR : ESP_SUM;
	case c10d::ReduceOp::AVG: return ESP_AVG;
	case c10d::ReduceOp::PRODUCT: return is_bool ? ESP_LAND : ESP_PROD;
	case c10d::ReduceOp::MIN: return is_bool ? ESP_LAND : ESP_MIN;
	case c10d::ReduceOp::MAX: return is_bool ? ESP_LOR : ESP_MAX;
	case c10d::ReduceOp::BAND: return ESP_BAND;
	case c10d::ReduceOp::BOR: return ESP_BOR;
	case c10d::ReduceOp::BXOR: return ESP_BXOR;
	case c10d::ReduceOp::PREMUL_SUM: {
		auto *more = dynamic_cast<c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());

		TORCH_CHECK(more && more->double_factor != 0.0, "espalier: PREMUL_SUM takes a number as its factor");
		*factor = more->double_factor;
		return ESP_SCALED;
	}
	default: TORCH_CHECK(false, "espalier: this operation is not supported");
	}
}

void check(esp_status status)
{
	if (status == ESP_OK)
		return;
	esp_error error = ESP_ERROR_INIT;
	esp_last_error(&error);
	TORCH_CHECK(false, "espalier: ", error.text);
}

const at::Tensor &only(const Tensors &tensors)
{
	TORCH_CHECK(tensors.size() == 1, "espalier: one tensor per rank, not ", tensors.size());
	return tensors[0];
}

const Tensors &only(const std::vector<Tensors> &lists)
{
	TORCH_CHECK(lists.size() == 1, "espalier: one list of tensors per rank, not ", lists.size());
	return lists[0];
}

/* Lists of which one entry belongs to one of the other. */
void check_lists(const Tensors &outputs, const Tensors &inputs)
{
	TORCH_CHECK(!inputs.empty(), "espalier: a list of tensors is empty");
	TORCH_CHECK(outputs.size() == inputs.size(), "espalier: ", inputs.size(), " tensors are given, and ", outputs.size(), " wanted");
}

/* ---- joining ---- */

struct Meeting {
	c10::intrusive_ptr<c10d::Store> store;
	int rank, size, turn;
};

esp_status meet(void *context, const void *mine, void *all, size_t bytes)
{
	auto *meeting = static_cast<Meeting *>(context);
	std::string prefix = "espalier/" + std::to_string(meeting->turn++) + "/";

	try {
		const auto *begin = static_cast<const uint8_t *>(mine);
		meeting->store->set(prefix + std::to_string(meeting->rank), std::vector<uint8_t>(begin, begin + bytes));
		for (int i = 0; i < meeting->size; i++) {
			std::vector<uint8_t> theirs = meeting->store->get(prefix + std::to_string(i));

			if (theirs.size() != bytes)
				return ESP_EMISMATCH;
			std::memcpy(static_cast<uint8_t *>(all) + static_cast<size_t>(i) * bytes, theirs.data(), bytes);
		}
	} catch (const std::exception &) {
		return ESP_EIO;
	}
	return ESP_OK;
}

std::mutex backends_lock;
std::vector<c10::weak_intrusive_ptr<Backend>> backends; /* all that there are, and some that are gone */

thread_local const Backend *backend_of_thread = nullptr; /* whose own thread this is */

/* All backends' own threads. At the end of Python they are waited for here, also one whose callback has closed its backend. */
class Threads {
public:
	void enter()
	{
		std::unique_lock<std::mutex> guard(lock_);

		count_++;
	}
	void leave()
	{
		std::unique_lock<std::mutex> guard(lock_);

		if (--count_ == 0)
			none_.notify_all();
	}
	void wait_for_none()
	{
		std::unique_lock<std::mutex> guard(lock_);

		none_.wait(guard, [this] { return count_ == 0; });
	}

private:
	std::mutex lock_;
	std::condition_variable none_;
	unsigned count_ = 0;
};

Threads &threads()
{
	static auto *all = new Threads; /* never gone: a thread may outlive this library's static objects */

	return *all;
}

} // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout)
	: Base(rank, size), timeout_(timeout)
{
	Meeting meeting = {store, rank, size, 0};
	esp_options options = ESP_OPTIONS_INIT;

	options.rank = static_cast<uint32_t>(rank);
	options.size = static_cast<uint32_t>(size);
	options.allgather = meet;
	options.allgather_context = &meeting;
	check(esp_init(&options, &context_));
	world_ = esp_world(context_);
	std::unique_lock<std::mutex> guard(lock_);
	if (!add_thread()) {
		guard.unlock();
		esp_fini(context_);
		TORCH_CHECK(false, "espalier: no thread can be made");
	}
}

/* lock_ is held. */
bool Backend::add_thread()
{
	threads().enter();
	try {
		std::thread([this] {
			backend_of_thread = this;
			run();
			threads().leave(); /* nothing of the backend is used from here on: it may be gone */
		}).detach();
	} catch (const std::system_error &) {
		threads().leave();
		return false;
	}
	threads_++;
	return true;
}

Backend::~Backend()
{
	close();
}

void Backend::release_resources()
{
	close();
}

c10::intrusive_ptr<Backend> Backend::create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout)
{
	auto made = c10::make_intrusive<Backend>(store, rank, size, timeout);
	std::unique_lock<std::mutex> guard(backends_lock);

	backends.erase(std::remove_if(backends.begin(), backends.end(), [](const auto &one) { return one.expired(); }), backends.end());
	backends.emplace_back(made);
	return made;
}

void Backend::close()
{
	/* Whoever waits for Python's lock in a callback must get it, or it never ends. */
	std::unique_ptr<pybind11::gil_scoped_release> without_python;
	/* A callback of one of the calls, in the backend's own thread, may be who closes it. */
	bool inside = backend_of_thread == this;

	if (Py_IsInitialized() && PyGILState_Check())
		without_python = std::make_unique<pybind11::gil_scoped_release>();
	{
		std::unique_lock<std::mutex> guard(lock_);
		if (quits_) { /* another thread closes it, or has; it waits for this one, if that is the backend's */
			guard.unlock();
			while (!closed_ && !inside)
				std::this_thread::yield();
			return;
		}
		quits_ = true;
	}
	wake_.notify_all();
	await_threads(inside ? 1 : 0); /* this one ends by itself: see run() */
	{
		/* Nobody comes in any more, and who is in comes out soon; but for whoever waits for a call, which is ended then. */
		std::unique_lock<std::shared_timed_mutex> alone(door_->lock, std::chrono::milliseconds(500));
		if (!alone) {
			esp_abort(world_, "the process group was closed");
			alone.lock();
		}
		/* What has not ended is dropped by the library; then nobody uses its memory any more. */
		door_->open = false;
		esp_fini(context_);
	}
	for (Call *call : live_) {
		if (!call->claimed_.exchange(true))
			call->end(std::make_exception_ptr(std::runtime_error("espalier: the process group was closed before the call had ended")));
		c10::raw::intrusive_ptr::decref(call);
	}
	live_.clear();
	closed_ = true;
}

void Backend::close_all()
{
	std::vector<c10::weak_intrusive_ptr<Backend>> open;

	{
		std::unique_lock<std::mutex> guard(backends_lock);
		open.swap(backends);
	}
	for (auto &one : open) {
		if (auto backend = one.lock())
			backend->close();
	}
	threads().wait_for_none();
}

int64_t Backend::deadline_ns(std::chrono::milliseconds wish) const
{
	auto limit = std::min<std::chrono::milliseconds>(wish.count() > 0 ? wish : timeout_, std::chrono::hours(24 * 365));

	return std::max<int64_t>(1, std::chrono::nanoseconds(limit).count());
}

void Backend::stop(const std::string &reason)
{
	esp_abort(world_, reason.c_str());
}

uint64_t Backend::getSequenceNumberForGroup()
{
	return sequence_;
}

/* ---- the life of a call ---- */

c10::intrusive_ptr<Call> Backend::begin(c10d::OpType kind)
{
	TORCH_CHECK(!quits_, "espalier: the process group has been closed");
	/* Ranks compare these numbers, and messages are not made by all of them. */
	if (kind != c10d::OpType::SEND && kind != c10d::OpType::RECV && kind != c10d::OpType::RECVANYSOURCE)
		sequence_++;
	auto call = c10::make_intrusive<Call>(this, kind, getRank());
	TORCH_CHECK(door_->open, "espalier: the process group has been closed"); /* meanwhile */
	return call;
}

/* By a thread of the library, which is not to be kept: the backend's own goes on from here. */
void Backend::ended(void *context, esp_work *, esp_status)
{
	auto *call = static_cast<Call *>(context);
	Backend *backend = call->backend_;

	if (call->unfinished_.fetch_sub(1) != 1)
		return;
	std::unique_lock<std::mutex> guard(backend->lock_);
	backend->ended_.push_back(call);
	backend->wake_.notify_one();
}

void Backend::start(Call &call, esp_call &request, std::chrono::milliseconds timeout)
{
	esp_work *work = nullptr;

	request.deadline_ns = deadline_ns(timeout);
	request.done = ended;
	request.done_context = &call;
	if (call.staged_) {
		request.gate = &call.gate_;
		request.gate_value = 1;
	}
	call.unfinished_++;
	esp_status status = esp_start(world_, &request, &work);
	if (status != ESP_OK)
		call.unfinished_--;
	check(status);
	call.works_.push_back(work);
}

/* Its works were started while one more was counted than there are, so it cannot have ended before it is known here. */
Backend::Works Backend::launch(c10::intrusive_ptr<Call> call, bool is_message)
{
	std::vector<c10::Device> devices;

	if (call->device_) {
		c10::impl::VirtualGuardImpl guard(call->device_->type());

		devices.push_back(*call->device_);
		call->called_ = std::make_unique<c10::Event>(call->device_->type());
		call->called_->record(guard.getStream(*call->device_));
	}
	call->future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
	c10::raw::intrusive_ptr::incref(call.get());
	{
		std::unique_lock<std::mutex> guard(lock_);
		live_.insert(call.get());
		if (call->staged_)
			staging_.push_back(call.get());
		if (is_message)
			messages_.push_back(call.get());
	}
	if (call->staged_ || is_message)
		wake_.notify_one();
	if (!is_message)
		ended(call.get(), nullptr, ESP_OK);
	call->starting_.unlock();
	return call;
}

/* The library has done its part. */
void Backend::settle(Call *call)
{
	auto more = std::move(call->more_);
	bool goes_on = false;

	call->more_ = nullptr;
	try {
		goes_on = more && more(*call);
	} catch (...) {
		call->failure_ = std::current_exception();
		stop("an alltoall cannot go on"); /* the others would wait for it */
	}
	if (goes_on)
		return;
	{
		/* One that has failed may still be copying to the host: nobody is to ask for that any more. */
		std::unique_lock<std::mutex> guard(lock_);
		staging_.erase(std::remove(staging_.begin(), staging_.end(), call), staging_.end());
		live_.erase(call);
	}
	call->complete();
	c10::raw::intrusive_ptr::decref(call);
}

/* It has been completed by who waited for it, and nobody will tell of its end. Whoever waits holds it too. */
void Backend::forget(Call *call)
{
	{
		std::unique_lock<std::mutex> guard(lock_);
		if (live_.erase(call) == 0)
			return;
	}
	c10::raw::intrusive_ptr::decref(call);
}

/* Nobody will tell of its end, and nobody waits for it any more. */
void Backend::ask_about(Call *call)
{
	{
		std::unique_lock<std::mutex> guard(lock_);
		messages_.push_back(call);
	}
	wake_.notify_one();
}

/* What has to be asked for; true: it has to be asked again soon. lock_ is held. */
bool Backend::look_around()
{
	bool opened = false;

	/* Copies to the host: whoever reads them is the library, so the host itself has to know that they are complete. */
	for (auto at = staging_.begin(); at != staging_.end();) {
		if (!(*at)->staged_->query()) {
			++at;
			continue;
		}
		(*at)->open_gate();
		opened = true;
		at = staging_.erase(at);
	}
	if (opened)
		esp_poke(context_);
	for (auto at = messages_.begin(); at != messages_.end();) {
		if (!(*at)->has_ended()) {
			++at;
			continue;
		}
		ended_.push_back(*at);
		at = messages_.erase(at);
	}
	return !staging_.empty() || !messages_.empty();
}

/*
 * Callbacks of a call's future may start another call and wait for it, as those of PowerSGD do. So while a thread settles such a
 * call there is always another one that settles the next: the threads are one more than callbacks that wait.
 */
void Backend::keep_spare()
{
	if (settling_ >= threads_)
		(void)add_thread();
}

/* Callbacks may be given to the call's future from now on, which may be settled at this moment. */
void Backend::expect_callbacks()
{
	std::unique_lock<std::mutex> guard(lock_);

	if (!quits_)
		keep_spare();
}

bool Backend::settle_next(std::unique_lock<std::mutex> &guard, const Door &door)
{
	Call *call = ended_.front();

	ended_.pop_front();
	settling_++;
	if (call->has_callbacks_)
		keep_spare();
	if (!ended_.empty() || !staging_.empty() || !messages_.empty())
		wake_.notify_one();
	guard.unlock();
	settle(call);
	if (!door.open) /* by this thread: another one that closes it waits for this one first */
		return false;
	guard.lock();
	settling_--;
	return true;
}

/* Nothing has ended: waits, and asks for that of which no thread of the library tells. */
void Backend::take_turn(std::unique_lock<std::mutex> &guard)
{
	bool looks = !is_looked_after_;

	if (looks && look_around()) {
		if (!ended_.empty())
			return;
		is_looked_after_ = true;
		wake_.wait_for(guard, std::chrono::microseconds(staging_.empty() ? 500 : 20));
		is_looked_after_ = false;
	} else if (ended_.empty()) {
		wake_.wait(guard, [this] {
			bool is_asked = !is_looked_after_ && (!staging_.empty() || !messages_.empty());

			return quits_ || !ended_.empty() || is_asked;
		});
	}
}

void Backend::run()
{
	auto door = door_; /* there, even if a callback has closed the backend and let go of it */
	std::unique_lock<std::mutex> guard(lock_);

	while (!quits_ || !ended_.empty()) {
		if (ended_.empty())
			take_turn(guard);
		else if (!settle_next(guard, *door))
			return;
	}
	threads_--;
	gone_.notify_all();
}

/*
 * Waits for all of its own threads but so many. One whose callback waits for a call that does not end gets half a second; then all
 * calls are ended, and the threads that are left settle them.
 */
void Backend::await_threads(unsigned own)
{
	std::unique_lock<std::mutex> guard(lock_);
	auto have_gone = [this, own] { return threads_ == own; };

	if (gone_.wait_for(guard, std::chrono::milliseconds(500), have_gone))
		return;
	guard.unlock();
	esp_abort(world_, "the process group was closed");
	guard.lock();
	gone_.wait(guard, have_gone);
}

/* ---- memory ---- */

at::Tensor Backend::usable(Call &call, const at::Tensor &tensor, bool read, bool write)
{
	TORCH_CHECK(tensor.layout() == at::kStrided, "espalier: sparse tensors are not supported");
	at::Tensor plain = tensor;
	if (!tensor.device().is_cpu()) {
		plain = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
		TORCH_CHECK(!call.device_ || *call.device_ == tensor.device(), "espalier: tensors of several devices in one call");
		call.device_ = tensor.device();
		if (read)
			plain.copy_(tensor, /*non_blocking=*/true);
	} else if (!tensor.is_contiguous()) {
		plain = read ? tensor.contiguous() : at::empty(tensor.sizes(), tensor.options());
	}
	if (write && !plain.is_same(tensor)) {
		auto before = call.finish_;
		at::Tensor target = tensor;

		call.finish_ = [before, target, plain]() mutable {
			if (before)
				before();
			target.copy_(plain, /*non_blocking=*/true);
		};
	}
	call.held_.push_back(plain);
	if (!plain.is_same(tensor))
		call.held_.push_back(tensor);
	return plain;
}

Tensors Backend::usable(Call &call, const Tensors &tensors, bool read, bool write)
{
	Tensors made;

	for (const at::Tensor &tensor : tensors)
		made.push_back(usable(call, tensor, read, write));
	return made;
}

/* After all copies to the host were queued: when they are complete, the call may begin. */
void Backend::stage(Call &call)
{
	if (!call.device_ || call.staged_)
		return;
	c10::impl::VirtualGuardImpl guard(call.device_->type());
	call.staged_ = std::make_unique<c10::Event>(call.device_->type());
	call.staged_->record(guard.getStream(*call.device_));
}

static std::vector<esp_buffer> buffers_of(const Tensors &tensors)
{
	std::vector<esp_buffer> made;

	for (const at::Tensor &tensor : tensors) {
		esp_buffer buffer = ESP_BUFFER_INIT;

		buffer.data = tensor.data_ptr();
		buffer.bytes = tensor.nbytes();
		made.push_back(buffer);
	}
	return made;
}

/* ---- collectives ---- */

/*
 * Everything but alltoall: `in` and `out` are lists of tensors that stand one behind the other. Where blocks differ in size, the
 * longer list says how.
 */
Backend::Works Backend::blocks(c10d::OpType kind, esp_collective collective, const Tensors &in, const Tensors &out, int root,
                               const c10d::ReduceOp *op, std::chrono::milliseconds timeout)
{
	TORCH_CHECK(!in.empty() || !out.empty(), "espalier: a list of tensors is empty");
	auto call = begin(kind);
	esp_call request = ESP_CALL_INIT;
	bool in_place = in.size() == out.size() && !in.empty() && in[0].is_same(out[0]);
	const at::Tensor &model = in.empty() ? out.at(0) : in[0];
	int64_t elements = 0;

	for (const Tensors *side : {&in, &out}) {
		for (const at::Tensor &tensor : *side)
			TORCH_CHECK(tensor.scalar_type() == model.scalar_type(), "espalier: tensors of one call have one type");
	}
	Tensors to = usable(*call, out, in_place || collective == ESP_BROADCAST, true);
	Tensors from = in_place ? to : usable(*call, in, true, false);
	stage(*call);
	call->outputs_ = out;

	request.collective = collective;
	request.root = static_cast<uint32_t>(root);
	/* What is only moved is moved as bytes, so that every type can be. */
	request.type = ESP_BYTES;
	int64_t unit = model.element_size();
	if (op) {
		bool is_complex = model.is_complex();

		TORCH_CHECK(!is_complex || op->op_ == c10d::ReduceOp::SUM || op->op_ == c10d::ReduceOp::AVG,
		            "espalier: complex tensors can be added and averaged");
		at::ScalarType type = is_complex ? c10::toRealValueType(model.scalar_type()) : model.scalar_type();
		request.type = type_of(type);
		request.op = op_of(*op, type, &request.factor);
		unit = static_cast<int64_t>(esp_type_bytes(request.type));
		TORCH_CHECK(op->op_ != c10d::ReduceOp::AVG || model.is_floating_point() || is_complex,
		            "espalier: the average of whole numbers is not what you want; sum them, and divide");
	}
	auto count_of = [&](const at::Tensor &tensor) {
		return static_cast<uint64_t>(static_cast<int64_t>(tensor.nbytes()) / (op ? unit : 1));
	};
	bool small_in = collective == ESP_ALLGATHER || collective == ESP_GATHER;
	bool small_out = collective == ESP_REDUCE_SCATTER || collective == ESP_SCATTER;
	const Tensors &large = small_in ? out : in;
	std::vector<uint64_t> counts;

	if (small_in || small_out) {
		const at::Tensor &own = small_in ? in.at(0) : out.at(0);

		request.count = count_of(own);
		if (large.size() == static_cast<size_t>(getSize())) {
			bool differ = false;
			for (const at::Tensor &tensor : large) {
				counts.push_back(count_of(tensor));
				differ = differ || counts.back() != counts[0];
			}
			TORCH_CHECK(counts[static_cast<size_t>(getRank())] == request.count,
			            "espalier: this rank's tensor and its block have different sizes");
			if (differ)
				request.counts = counts.data();
		} else if (large.size() == 1) {
			TORCH_CHECK(count_of(large[0]) == request.count * static_cast<uint64_t>(getSize()),
			            "espalier: the large tensor must be ", getSize(), " times as large as the small one");
		} else {
			TORCH_CHECK(large.empty(), "espalier: a list needs one tensor per rank");
		}
	} else {
		for (const at::Tensor &tensor : collective == ESP_BROADCAST || in.empty() ? out : in)
			elements += static_cast<int64_t>(count_of(tensor));
		request.count = static_cast<uint64_t>(elements);
	}
	auto in_buffers = buffers_of(from), out_buffers = buffers_of(to);
	if (collective != ESP_BROADCAST && !in_buffers.empty()) {
		if (in_buffers.size() == 1)
			request.in = in_buffers[0].data;
		request.in_buffers = in_buffers.size() > 1 ? in_buffers.data() : nullptr;
		request.in_buffer_count = in_buffers.size() > 1 ? static_cast<uint32_t>(in_buffers.size()) : 0;
	}
	if (!out_buffers.empty()) {
		if (out_buffers.size() == 1)
			request.out = out_buffers[0].data;
		request.out_buffers = out_buffers.size() > 1 ? out_buffers.data() : nullptr;
		request.out_buffer_count = out_buffers.size() > 1 ? static_cast<uint32_t>(out_buffers.size()) : 0;
	}
	call->unfinished_ = 1;
	start(*call, request, timeout);
	return launch(std::move(call));
}

Backend::Works Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
	only(tensors);
	return blocks(c10d::OpType::BROADCAST, ESP_BROADCAST, {}, tensors, static_cast<int>(opts.rootRank), nullptr, opts.timeout);
}

Backend::Works Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
	if (only(tensors).layout() != at::kStrided)
		return allreduce_sparse(tensors[0], opts);
	return blocks(c10d::OpType::ALLREDUCE, ESP_ALLREDUCE, tensors, tensors, 0, &opts.reduceOp, opts.timeout);
}

Backend::Works Backend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
	return blocks(c10d::OpType::ALLREDUCE_COALESCED, ESP_ALLREDUCE, tensors, tensors, 0, &opts.reduceOp, opts.timeout);
}

Backend::Works Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
	only(tensors);
	bool is_root = opts.rootRank == getRank();
	return blocks(c10d::OpType::REDUCE, ESP_REDUCE, tensors, is_root ? tensors : Tensors(), static_cast<int>(opts.rootRank),
	              &opts.reduceOp, opts.timeout);
}

Backend::Works Backend::allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
	only(inputs);
	return blocks(c10d::OpType::ALLGATHER, ESP_ALLGATHER, inputs, only(outputs), 0, nullptr, opts.timeout);
}

Backend::Works Backend::_allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts)
{
	return blocks(c10d::OpType::_ALLGATHER_BASE, ESP_ALLGATHER, {input}, {output}, 0, nullptr, opts.timeout);
}

Backend::Works Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts)
{
	only(inputs);
	bool is_root = opts.rootRank == getRank();
	return blocks(c10d::OpType::GATHER, ESP_GATHER, inputs, is_root ? only(outputs) : Tensors(), static_cast<int>(opts.rootRank),
	              nullptr, opts.timeout);
}

Backend::Works Backend::scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts)
{
	only(outputs);
	bool is_root = opts.rootRank == getRank();
	return blocks(c10d::OpType::SCATTER, ESP_SCATTER, is_root ? only(inputs) : Tensors(), outputs, static_cast<int>(opts.rootRank),
	              nullptr, opts.timeout);
}

Backend::Works Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ReduceScatterOptions &opts)
{
	only(outputs);
	return blocks(c10d::OpType::REDUCE_SCATTER, ESP_REDUCE_SCATTER, only(inputs), outputs, 0, &opts.reduceOp, opts.timeout);
}

Backend::Works Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts)
{
	return blocks(c10d::OpType::_REDUCE_SCATTER_BASE, ESP_REDUCE_SCATTER, {input}, {output}, 0, &opts.reduceOp, opts.timeout);
}

/* Several calls; the last says when all have ended, as each rank makes them in this order. */
Backend::Works Backend::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
	/* outputs[rank][i] belongs to inputs[i] */
	Works last;

	TORCH_CHECK(outputs.size() == static_cast<size_t>(getSize()), "espalier: a list of tensors for every rank");
	for (Tensors &list : outputs)
		check_lists(list, inputs);
	for (size_t i = 0; i < inputs.size(); i++) {
		Tensors row;
		for (Tensors &list : outputs)
			row.push_back(list[i]);
		Works next = blocks(c10d::OpType::ALLGATHER_COALESCED, ESP_ALLGATHER, {inputs[i]}, row, 0, nullptr, opts.timeout);
		if (last)
			last->wait();
		last = next;
	}
	return last;
}

#if TORCH_VERSION_MAJOR >= 2
Backend::Works Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
	Works last;

	check_lists(outputs, inputs);
	for (size_t i = 0; i < inputs.size(); i++) {
		Works next = _allgather_base(outputs[i], inputs[i], opts);
		if (last)
			last->wait();
		last = next;
	}
	return last;
}

Backend::Works Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::ReduceScatterOptions &opts)
{
	Works last;

	check_lists(outputs, inputs);
	for (size_t i = 0; i < inputs.size(); i++) {
		Works next = _reduce_scatter_base(outputs[i], inputs[i], opts);
		if (last)
			last->wait();
		last = next;
	}
	return last;
}
#endif

/*
 * Blocks of any size: a rank knows what it sends and gets, and the library wants the table of all ranks. So rows are gathered first;
 * then the backend's thread starts the exchange itself, with a key, as other ranks may have made other calls meanwhile.
 */
Backend::Works Backend::exchange(c10d::OpType kind, const Tensors &in, const Tensors &out, std::chrono::milliseconds timeout)
{
	auto call = begin(kind);
	auto size = static_cast<size_t>(getSize());
	esp_call counting = ESP_CALL_INIT;
	Tensors from = usable(*call, in, true, false), to = usable(*call, out, false, true);

	stage(*call);
	call->outputs_ = out;
	TORCH_CHECK(in.size() == size && out.size() == size, "espalier: an alltoall needs one tensor per rank on both sides");
	for (const at::Tensor &tensor : from)
		call->row_.push_back(tensor.nbytes());
	call->table_.resize(size * size);
	uint64_t key = keys_++;
	call->chained_ = true;
	call->more_ = [this, from, to, key, timeout](Call &self) {
		auto in_buffers = buffers_of(from), out_buffers = buffers_of(to);
		esp_call moving = ESP_CALL_INIT;
		if (esp_test(self.works_[0]) != ESP_OK)
			return false;
		for (size_t i = 0; i < to.size(); i++) {
			uint64_t given = self.table_[i * to.size() + static_cast<size_t>(getRank())];

			TORCH_CHECK(given == to[i].nbytes(), "espalier: rank ", i, " sends ", given, " bytes to rank ", getRank(), ", which expects ",
			            to[i].nbytes());
		}
		moving.collective = ESP_ALLTOALL;
		moving.type = ESP_BYTES;
		moving.counts = self.table_.data();
		moving.in_buffers = in_buffers.data();
		moving.out_buffers = out_buffers.data();
		moving.in_buffer_count = moving.out_buffer_count = static_cast<uint32_t>(in_buffers.size());
		moving.flags = ESP_KEYED;
		moving.key = key;
		self.unfinished_ = 1;
		self.staged_ = nullptr; /* the gate was the first call's */
		start(self, moving, timeout);
		ended(&self, nullptr, ESP_OK);
		return true;
	};
	counting.collective = ESP_ALLGATHER;
	counting.type = ESP_U64;
	counting.count = size;
	counting.in = call->row_.data();
	counting.out = call->table_.data();
	call->unfinished_ = 1;
	start(*call, counting, timeout);
	return launch(std::move(call));
}

Backend::Works Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
	return exchange(c10d::OpType::ALLTOALL, inputs, outputs, opts.timeout);
}

Backend::Works Backend::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                                      std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts)
{
	auto cut = [this](const at::Tensor &tensor, const std::vector<int64_t> &splits) {
		if (splits.empty() && tensor.size(0) == 0)
			return std::vector<at::Tensor>(static_cast<size_t>(getSize()), tensor);
		if (splits.empty()) {
			TORCH_CHECK(tensor.size(0) % getSize() == 0, "espalier: the first dimension cannot be divided evenly among ", getSize(), " ranks");
			return std::vector<at::Tensor>(tensor.split(tensor.size(0) / getSize(), 0));
		}
		TORCH_CHECK(splits.size() == static_cast<size_t>(getSize()), "espalier: one split per rank");
		return std::vector<at::Tensor>(tensor.split_with_sizes(splits, 0));
	};
	auto in = cut(input, input_splits), out = cut(output, output_splits);

	return exchange(c10d::OpType::ALLTOALL_BASE, in, out, opts.timeout);
}

Backend::Works Backend::barrier(const c10d::BarrierOptions &opts)
{
	auto call = begin(c10d::OpType::BARRIER);
	esp_call request = ESP_CALL_INIT;

	request.collective = ESP_BARRIER;
	request.type = ESP_BYTES;
	call->unfinished_ = 1;
	start(*call, request, opts.timeout);
	return launch(std::move(call));
}

/* Every error of this library says who is missing. */
void Backend::monitoredBarrier(const c10d::BarrierOptions &opts, bool)
{
	barrier(opts)->wait();
}

/* ---- messages ---- */

Backend::Works Backend::send(Tensors &tensors, int to, int tag)
{
	auto call = begin(c10d::OpType::SEND);
	at::Tensor plain = usable(*call, only(tensors), true, false);
	esp_work *work = nullptr;

	if (call->device_) { /* a message has no gate */
		stage(*call);
		while (!call->staged_->query())
			std::this_thread::yield();
		call->staged_ = nullptr;
	}
	check(esp_send_start(world_, plain.data_ptr(), plain.nbytes(), static_cast<uint32_t>(to), static_cast<uint64_t>(tag),
	                     deadline_ns(timeout_), &work));
	call->works_.push_back(work);
	call->outputs_ = tensors;
	return launch(std::move(call), true);
}

Backend::Works Backend::recv(Tensors &tensors, int from, int tag)
{
	auto call = begin(from < 0 ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV);
	at::Tensor plain = usable(*call, only(tensors), false, true);
	esp_work *work = nullptr;

	check(esp_recv_start(world_, plain.data_ptr(), plain.nbytes(), from < 0 ? ESP_ANY_RANK : static_cast<uint32_t>(from),
	                     static_cast<uint64_t>(tag), deadline_ns(timeout_), &work));
	call->works_.push_back(work);
	call->outputs_ = tensors;
	call->source_ = from;
	return launch(std::move(call), true);
}

Backend::Works Backend::recvAnysource(Tensors &tensors, int tag)
{
	return recv(tensors, -1, tag);
}

} // namespace espalier
